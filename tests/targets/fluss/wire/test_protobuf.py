"""Messages are read as they were written; what is none is Malformed, and nothing else is raised."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.fluss.wire import protobuf
from targets.fluss.wire.frames import request_body
from targets.fluss.wire.protobuf import Malformed, data_of, fields, message, messages, number, numbers
from tests.targets.fluss.wire.wire import COMMANDS, FETCH

FIELDS = st.integers(1, 2**29 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
PARTS = st.lists(st.tuples(FIELDS, LONGS | st.binary(max_size=300)))
REAL = [request_body(FETCH), request_body(COMMANDS)]


@given(PARTS)
def test_message_is_read_as_it_was_written(parts: list[tuple[int, int | bytes]]) -> None:
    found = fields(message(parts))
    assert {field for field, _ in parts} == {*found}
    for field, values in found.items():
        sent = [value for each, value in parts if each == field]
        assert [value % 2**64 if isinstance(value, int) else value for value in sent] == values
        last = sent[-1]
        assert last == (number(found, field) if isinstance(last, int) else data_of(found, field))


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (0, "0800"),
        (1, "0801"),
        (127, "087f"),
        (128, "088001"),
        (150, "089601"),
        (2**31 - 1, "08ffffffff07"),
        (-1, "08ffffffffffffffffff01"),
        (-(2**31), "0880808080f8ffffffff01"),
        (-(2**63), "0880808080808080808001"),
    ],
)
def test_number_is_spelled_as_the_encoding_guide_says_and_a_negative_one_in_ten_bytes(
    value: int, spelled: str
) -> None:
    assert bytes.fromhex(spelled) == message([(1, value)])
    assert value == number(fields(bytes.fromhex(spelled)), 1)


def test_bytes_and_messages_inside_are_spelled_with_their_length() -> None:
    inside = message([(1, 150)])
    assert bytes.fromhex("1a03089601") == message([(3, inside)])
    assert [{1: [150]}] == [*messages(fields(bytes.fromhex("1a03089601")), 3)]
    assert b"testing" == data_of(fields(bytes.fromhex("120774657374696e67")), 2)


def test_field_that_is_there_twice_counts_the_last_time_and_all_are_kept() -> None:
    found = fields(message([(1, 5), (2, b"a"), (1, 7), (2, b"b")]))
    assert ([5, 7], 7, b"b") == (found[1], number(found, 1), data_of(found, 2))


def test_field_that_is_not_there_is_the_default() -> None:
    assert (0, -1, b"", (), []) == (
        number({}, 1),
        number({}, 1, -1),
        data_of({}, 1),
        numbers({}, 1),
        [*messages({}, 1)],
    )


@pytest.mark.parametrize("ids", [[], [0], [1, 2, 3], [300, 2, 2**31 - 1], [-1, 2]])
def test_repeated_numbers_are_read_packed_and_not_and_mixed(ids: list[int]) -> None:
    packed = b"".join(message([(1, each)])[1:] for each in ids)
    assert (*ids,) == numbers(fields(message((6, each) for each in ids)), 6)
    assert (*ids,) == numbers(fields(message([(6, packed)])), 6)
    assert (*ids, *ids) == numbers(fields(message([(6, packed), *((6, each) for each in ids)])), 6)


def test_fixed_numbers_are_passed_over_and_are_no_varints() -> None:
    fixed = b"\x09" + struct.pack("<q", -1) + b"\x15" + struct.pack("<i", 7)
    found = fields(fixed + message([(3, 9)]))
    assert ([b"\xff" * 8], [b"\7\0\0\0"], 9) == (found[1], found[2], number(found, 3))
    with pytest.raises(Malformed, match="field 1: bytes; expected a number"):
        number(found, 1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("08", "the end; expected the rest of a number"),
        ("0880", "the end; expected the rest of a number"),
        ("08" + "80" * 10 + "01", "a number of more than 10 bytes"),
        ("ff" * 11, "a number of more than 10 bytes"),
        ("1205616263", "a field of 5 bytes; expected at most 3"),
        ("12ffffffffffffffffff01", "a field of 18446744073709551615 bytes; expected at most 0"),
        ("0900000000000000", "a field of 8 bytes; expected at most 7"),
        ("0d000000", "a field of 4 bytes; expected at most 3"),
        ("0b", "a field of kind 3; expected one of 0, 1, 2, 5"),
        ("0c", "a field of kind 4"),
        ("0e", "a field of kind 6"),
        ("0f", "a field of kind 7"),
    ],
)
def test_bytes_that_are_no_message_are_malformed(data: str, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        fields(bytes.fromhex(data))


def test_field_of_another_kind_than_asked_for_is_malformed() -> None:
    found = fields(message([(1, 5), (2, b"\x08")]))
    with pytest.raises(Malformed, match="field 1: a number; expected bytes"):
        data_of(found, 1)
    with pytest.raises(Malformed, match="field 1: a number; expected a message"):
        list(messages(found, 1))
    with pytest.raises(Malformed, match="expected the rest"):
        list(messages(found, 2))
    with pytest.raises(Malformed, match="expected the rest"):
        numbers(fields(message([(6, b"\x01\x80")])), 6)


def test_more_fields_than_any_message_has_are_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "FIELDS_MAX", 3)
    assert {1: [0, 0, 0]} == fields(b"\x08\x00" * 3)
    with pytest.raises(Malformed, match="more than 3 fields"):
        fields(b"\x08\x00" * 4)


@pytest.mark.parametrize("data", REAL, ids=["fetch", "commands"])
def test_every_truncation_is_malformed_or_has_the_first_fields_alone(data: bytes) -> None:
    whole = [(field, value) for field, values in fields(data).items() for value in values]
    shorter = 0
    for size in range(len(data)):
        try:
            found = fields(data[:size])
        except Malformed:
            continue
        shorter += 1
        assert len(whole) > sum(map(len, found.values()))
        for field, values in found.items():
            assert values == fields(data)[field][: len(values)]
    # It can end after a field alone: at the beginning, and after each but the last.
    assert len(whole) == shorter


@pytest.mark.parametrize("data", REAL, ids=["fetch", "commands"])
def test_every_byte_may_lie_and_nothing_but_malformed_is_raised(data: bytes) -> None:
    for at in range(len(data)):
        for lie in {0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1} - {data[at]}:
            with suppress(Malformed):
                _read_all(data[:at] + bytes((lie,)) + data[at + 1 :])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_message_or_malformed(data: bytes) -> None:
    with suppress(Malformed):
        _read_all(data)


def _read_all(data: bytes) -> None:
    """Read a message, and every field of it as everything that it may be."""
    found = fields(data)
    assert sum(len(value) for values in found.values() for value in values if isinstance(value, bytes)) <= len(
        data
    )
    for field in found:
        for read in (number, data_of, numbers, lambda of, at: list(messages(of, at))):
            with suppress(Malformed):
                read(found, field)
