"""The loop for usual records finds what the reader of any record finds, and both find what the format says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.broker.core.log_port import number_bytes
from targets.broker.log.records import HeavyError, RecordsError, _AnyRecord, check_records, number_at
from tests.broker.log.batches import drawn, raw_record, varint, with_length

sizes = st.one_of(st.integers(0, 5), st.sampled_from([62, 63, 64, 65, 8190, 8191, 8192, 8193, 9000]))
texts = st.one_of(st.none(), sizes.map(bytes))
record = st.fixed_dictionaries(
    {
        "key": texts,
        "value": texts,
        "time": st.sampled_from([0, 1, -1, 63, 64, 8191, 8192, -8193, 1 << 40, -(1 << 40)]),
        "headers": st.lists(st.tuples(st.binary(max_size=3), texts), max_size=3),
    }
)


def by_any_reader(data: bytes, count: int) -> bool:
    """Check records without the loop for usual ones."""
    other, at = _AnyRecord(data, None), 0
    try:
        for delta in range(count):
            at = other.end_of(at, 2 * delta)
    except (RecordsError, IndexError):
        return False
    return at == len(data)


def is_accepted(data: bytes, count: int) -> bool:
    try:
        check_records(data, count)
    except RecordsError:
        return False
    return True


@drawn
@given(st.lists(record, min_size=1, max_size=6), st.sampled_from([0, 60, 8188]))
def test_whole_records_are_accepted(records: list[dict[str, object]], before: int) -> None:
    data = b"".join(raw_record(at) for at in range(before))
    data += b"".join(raw_record(before + at, **each) for at, each in enumerate(records))  # type: ignore[arg-type]
    count = before + len(records)
    assert sum(len(each["headers"]) for each in records) == check_records(data, count)  # type: ignore[arg-type]
    assert by_any_reader(data, count)
    assert not is_accepted(data, count + 1)
    assert not is_accepted(data, count - 1)
    assert not is_accepted(data[:-1], count)
    assert not is_accepted(data + bytes(1), count)


@drawn
@given(st.lists(record, min_size=1, max_size=3), st.data())
def test_changed_records_are_judged_alike_by_both_readers(
    records: list[dict[str, object]], data: st.DataObject
) -> None:
    raw = bytearray(b"".join(raw_record(at, **each) for at, each in enumerate(records)))  # type: ignore[arg-type]
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, min(40, len(raw) - 1)))] = data.draw(
            st.sampled_from([0, 1, 2, 3, 127, 128, 129, 255])
        )
    assert by_any_reader(bytes(raw), len(records)) == is_accepted(bytes(raw), len(records))


@pytest.mark.parametrize("at", range(40))
@pytest.mark.parametrize("byte", [0, 1, 2, 3, 4, 5, 15, 127, 128, 129, 255])
def test_every_byte_is_judged_alike_by_both_readers(at: int, byte: int) -> None:
    for records in (
        raw_record(0, key=b"key", value=bytes(100)) + raw_record(1, time=100, value=b""),
        raw_record(0, value=None, headers=[(b"a", b"b")]) + raw_record(1, key=bytes(70)),
    ):
        raw = bytearray(records)
        raw[at % len(raw)] = byte
        assert by_any_reader(bytes(raw), 2) == is_accepted(bytes(raw), 2)


@pytest.mark.parametrize("count", [64, 65, 8192, 8193, 20_000])
def test_records_without_end_are_accepted_and_need_no_reader_of_any_record(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(raw_record(at, time=at * 1_000_000, key=b"k", value=bytes(at % 300)) for at in range(count))
    assert by_any_reader(data, count)
    monkeypatch.setattr(_AnyRecord, "end_of", None)
    assert 0 == check_records(data, count)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\0\0" + varint(0) + varint(-2) + varint(0) + b"\0", "a key of -2 bytes; expected at least -1"),
        (b"\0\0" + varint(0) + varint(-1) + varint(-2) + bytes(3), "a value of -2 bytes; expected at least -1"),
        (b"\0\0" + varint(0) + varint(-1) + varint(-1) + varint(1) + varint(-1) + b"\0", "name of -1 bytes"),
        (b"\0\0" + varint(0) + varint(-1) + varint(-1) + varint(-1) + b"\0", "-1 headers in 1 bytes"),
        (b"\0\0" + varint(0) + varint(-1) + varint(-1) + varint(9) + bytes(17), "9 headers in 17 bytes"),
        (b"\0\0" + varint(0) + varint(-1) + varint(-1) + varint(0) + bytes(3), "9 bytes, its fields 6"),
        (b"\0" + b"\x80" * 10 + bytes(9), "a number of more than 10 bytes"),
    ],
)
def test_record_that_contradicts_itself_is_refused_with_a_reason(body: bytes, words: str) -> None:
    with pytest.raises(RecordsError, match=words):
        check_records(with_length(body), 1)


def test_record_of_a_negative_length_is_refused() -> None:
    raw = raw_record(0)
    assert not is_accepted(varint(-len(raw) + 1) + raw[1:], 1)


def test_number_may_be_longer_than_it_must() -> None:
    """Source: Kafka, ByteUtils.readVarint, which accepts it too."""
    body = b"\0\x80\x00\x80\x80\x00" + varint(-1) + b"\x82\x80\x00m" + b"\0"
    check_records(with_length(body), 1)


def test_headers_are_counted_over_all_records() -> None:
    data = b"".join(raw_record(at, headers=[(b"a", b"b")] * 3) for at in range(4))
    assert 12 == check_records(data, 4, 12)
    with pytest.raises(HeavyError, match="12 headers of records; 11 allowed at once"):
        check_records(data, 4, 11)


@pytest.mark.parametrize(
    ("number", "size"),
    [(0, 1), (-1, 1), (63, 1), (-64, 1), (64, 2), (-65, 2), (8191, 2), (-8192, 2), (8192, 3), (2**61, 9)],
)
def test_number_is_written_as_it_is_read(number: int, size: int) -> None:
    written = number_bytes(number)
    assert (varint(number), size, (number, size)) == (written, len(written), number_at(written, 0))
