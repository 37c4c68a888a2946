"""What an append entry says, whole or cut, and how much of a compressed message is needed for it."""

from __future__ import annotations

import struct

import pytest

from targets.nats.wire import s2
from targets.nats.wire.frames import Malformed
from targets.nats.wire.raft import Answer, StreamMessage, answer, append_entry, stream_message
from tests.targets.nats.wire import wire as said
from tests.targets.nats.wire.wire import PEER_STATE, stored

PURGE = (0, b"\x05{}")
DELETE = (0, b"\x06{}")
SNAPSHOT = (6, b"state")


def batch(op: int, number: bytes, message: bytes) -> bytes:
    return bytes((op,)) + struct.pack("<H", 2) + b"id" + number + message


def test_entry_has_its_first_and_last_message_and_they_are_stored_behind_the_previous_index() -> None:
    entry = append_entry(said.append_entry(7, [stored(5), DELETE, stored(6), PEER_STATE, stored(9)]), whole=True)
    assert (1, 7, True, True) == (entry.term, entry.previous, entry.stored, entry.understood)
    assert (StreamMessage("log-0", 5), StreamMessage("log-0", 9)) == (entry.first, entry.last)


def test_entry_with_a_purge_behind_its_messages_is_not_understood() -> None:
    entry = append_entry(said.append_entry(7, [stored(5), PURGE]), whole=True)
    assert (StreamMessage("log-0", 5), False) == (entry.first, entry.understood)


@pytest.mark.parametrize(
    ("entries", "is_stored", "understood"),
    [
        ([], False, True),
        ([PEER_STATE], True, True),
        ([DELETE], True, True),
        ([PURGE], True, False),
        ([(0, b"\x63?")], True, False),
        ([(0, b"")], True, False),
        ([SNAPSHOT, PEER_STATE], False, True),
        ([(0, b"\x04short")], True, False),
    ],
)
def test_entry_without_a_message_that_can_be_read(
    entries: list[said.Entry], is_stored: bool, understood: bool
) -> None:
    entry = append_entry(said.append_entry(7, entries), whole=True)
    assert (None, None, is_stored, understood) == (entry.first, entry.last, entry.stored, entry.understood)


def test_entry_cut_short_has_its_first_message_and_is_understood_only_if_its_last_is_there() -> None:
    whole = said.append_entry(7, [stored(5), stored(6)])
    second = len(whole) - len(stored(6)[1]) - 6
    for size in range(42, len(whole)):
        entry = append_entry(whole[:size], whole=False)
        assert entry.first in (None, StreamMessage("log-0", 5))
        assert (entry.first is not None) == (size >= 42 + 5 + 19 + len("log-0"))
        assert entry.understood == (size >= second + 5 + 19 + len("log-0"))
        assert not entry.understood or entry.last == StreamMessage("log-0", 6)
    for size in range(42):
        with pytest.raises(Malformed, match=f"append entry of {size} bytes; expected a head of 42"):
            append_entry(whole[:size], whole=False)


def test_entry_that_says_it_is_whole_and_is_cut_is_malformed() -> None:
    whole = said.append_entry(7, [stored(5), stored(6)])[:-1]
    assert append_entry(whole, whole=True).last == StreamMessage("log-0", 6)
    for size in range(len(whole)):
        with pytest.raises(Malformed):
            append_entry(whole[:size], whole=True)


@pytest.mark.parametrize("length", [0, 60, 2**32 - 1])
def test_entry_with_a_length_that_lies_is_malformed(length: int) -> None:
    data = said.append_entry(7, [stored(5)])
    lie = data[:42] + struct.pack("<I", length) + data[46:]
    with pytest.raises(Malformed, match=f"entry 0 of {length} bytes at byte 42"):
        append_entry(lie, whole=True)


def test_more_entries_than_there_are_is_malformed() -> None:
    with pytest.raises(Malformed, match="entry 1 at byte"):
        append_entry(said.append_entry(7, [stored(5)], count=65535), whole=True)


# --- messages of a stream --------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [b"\x01", b"\xff\x01"])
@pytest.mark.parametrize("op", [16, 17])
def test_message_of_a_batch_is_a_message(op: int, number: bytes) -> None:
    assert StreamMessage("u-1", 8) == stream_message(batch(op, number, said.stream_message(8, "u-1")))


def test_gap_without_a_subject_and_a_sequence_that_lies_are_no_message() -> None:
    assert stream_message(said.stream_message(8, "")) is None
    assert stream_message(said.stream_message(2**63)) is None
    assert StreamMessage("log-0", 2**63 - 1) == stream_message(said.stream_message(2**63 - 1))


@pytest.mark.parametrize("whole", [said.stream_message(8), batch(16, b"\x01", said.stream_message(8))])
def test_message_cut_before_its_subject_ends_is_none(whole: bytes) -> None:
    end = whole.index(b"log-0") + len(b"log-0")
    assert [None] * end == [stream_message(whole[:size]) for size in range(end)]
    assert StreamMessage("log-0", 8) == stream_message(whole[:end])


def test_compressed_message_is_read_as_far_as_its_subject() -> None:
    # As a server sends 20,000 equal bytes at sequence 46: literals, copies, and a repeat that is long.
    head = struct.pack("<QQH", 45, 5, 5) + b"log-0"
    block = b"\xd0\x9c\x01" + bytes(((len(head) - 1) << 2,)) + head + b"\x00z\x09\x01\x1d\x00\xff\xff\x00"
    assert StreamMessage("log-0", 46) == stream_message(b"\x0e" + block)
    assert StreamMessage("log-0", 46) == stream_message(batch(17, b"\x03", b"\x0e" + block))
    assert stream_message(b"\x0e" + block[: len(head)]) is None


# --- S2 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("block", "out"),
    [
        (b"\x05\x10abcde", b"abcde"),
        (b"\x05\xf0\x04abcde", b"abcde"),
        (b"\x05\xfc\x04\x00\x00\x00abcde", b"abcde"),
        (b"\x09\x10abcde\x01\x05", b"abcdeabcd"),  # a copy of 4 from 5 before
        (b"\x0c\x10abcde\x1a\x05\x00", b"abcdeabcdeab"),  # of 7, the offset in 2 bytes
        (b"\x0c\x10abcde\x1b\x05\x00\x00\x00", b"abcdeabcdeab"),  # in 4 bytes
        (b"\x0d\x10abcde\x01\x01\x01\x00", b"abcdeeeeeeeee"),  # from 1 before, then a repeat
        (b"\x19\x10abcde\x01\x01\x15\x00\x08", b"abcde" + b"e" * 20),  # a repeat of 8 and 8
        (b"\x90\x4e\x00a\x01\x01\x19\x00\x00\x00", b"a" * 265),  # of 256 and 4
        (b"", b""),
        (b"\x80\x80", b""),
    ],
)
def test_block_is_decompressed_by_each_kind_of_element(block: bytes, out: bytes) -> None:
    assert out == s2.beginning(block, 1000)
    assert [out[:size] for size in range(9)] == [s2.beginning(block, size) for size in range(9)]


def test_beginning_of_a_block_takes_no_more_than_asked() -> None:
    long_repeat = b"\xff\xff\xff\x07\x00a\x01\x01\x1d\x00\xff\xff\xff"  # of 16 MB
    assert b"a" * 100 == s2.beginning(long_repeat, 100)
    assert b"a" * 100 == s2.beginning(b"\xff\xff\x07\xfc\xff\xff\xff\xff" + b"a" * 5000, 100)


@pytest.mark.parametrize(
    "block", [b"\x05\x01\x01", b"\x05\x00a\x01\x02", b"\x05\x00a\x02\x00\x00", b"\x05\x01\x00"]
)
def test_copy_from_before_the_beginning_is_malformed(block: bytes) -> None:
    with pytest.raises(Malformed, match="expected one from within"):
        s2.beginning(block, 100)


# --- answers ---------------------------------------------------------------------------------------------------
def test_answer_has_the_index_of_its_sender_and_whether_it_took_the_entry() -> None:
    assert Answer(1, 9, success=True) == answer(said.answer(9))
    assert Answer(1, 9, success=False) == answer(said.answer(9, success=False))
    assert Answer(1, 9, success=False) == answer(said.answer(9)[:-1])  # a request for a snapshot


@pytest.mark.parametrize("size", [0, 17, 23, 26])
def test_answer_of_another_length_is_malformed(size: int) -> None:
    with pytest.raises(Malformed, match=f"answer to an append entry of {size} bytes; expected 25"):
        answer(bytes(size))
