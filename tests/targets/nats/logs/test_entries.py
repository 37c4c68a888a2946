"""Append entries and the records in them are decoded; every length that lies is refused with its place."""

from __future__ import annotations

import struct

import cramjam
import pytest

from harness import limits
from targets.nats.logs.entries import (
    BATCH_COMMIT,
    BATCH_PART,
    COMPRESSED_RECORD,
    GAP,
    RECORD,
    Entry,
    Malformed,
    append_entry,
    gap,
    header_lines,
    stream_message,
    stream_messages,
)
from tests.targets.nats.logs.build import TIME_NS, appended, message

HEADER = b"NATS/1.0\r\nNats-Msg-Id: id-1\r\nA: b: c\r\nA:\r\n\r\n"


def normal(operation: int, data: bytes) -> Entry:
    return Entry(kind=0, data=bytes((operation,)) + data)


def test_append_entry_has_what_its_leader_says() -> None:
    found = append_entry(appended(7, b"\x04abc", b"\x06{}", tail=b"\x09"))
    assert ("LeaderId", 7, 3, 7, 2, 9) == (
        found.leader,
        found.term,
        found.commit,
        found.previous_term,
        found.previous_index,
        found.leader_term,
    )
    assert [(0, 4, b"\x04abc"), (0, 6, b"\x06{}")] == [(e.kind, e.operation, e.data) for e in found.entries]


def test_heartbeat_has_no_entries_and_an_old_one_no_term_of_its_leader() -> None:
    found = append_entry(appended(1, tail=b""))
    assert ((), None) == (found.entries, found.leader_term)


def test_entry_of_another_kind_has_no_operation() -> None:
    (found,) = append_entry(appended(1, b"\x04", kind=5)).entries
    assert (5, None, None) == (found.kind, found.operation, stream_message(found))
    assert stream_message(Entry(kind=0, data=b"")) is None


def test_append_entry_that_is_cut_at_any_byte_is_refused() -> None:
    whole = appended(1, b"\x04abc", b"\x06{}", tail=b"")
    for size in range(len(whole)):
        with pytest.raises(Malformed, match="expected"):
            append_entry(whole[:size])


@pytest.mark.parametrize("size", [0, 2**31, 2**32 - 1])
def test_size_of_an_entry_that_lies_is_refused(size: int) -> None:
    whole = bytearray(appended(1, b"\x04abc"))
    struct.pack_into("<I", whole, 42, size)
    with pytest.raises(Malformed, match=f"byte 46: entry 0 has {size} bytes; expected 1 to 6"):
        append_entry(bytes(whole))


def test_record_has_its_sequence_time_subject_header_and_payload() -> None:
    found = stream_message(normal(RECORD, message(41, b"value", header=HEADER, subject=b"orders.a")))
    assert found is not None
    assert (41, 42, TIME_NS + 42) == (found.last, found.sequence, found.timestamp_ns)
    assert ("orders.a", "r", HEADER, b"value") == (found.subject, found.reply, found.header, found.payload)
    assert (False, False, "") == (found.skips, found.from_elsewhere, found.batch)


def test_compressed_record_is_the_same() -> None:
    plain = message(0, b"long " * 2000)
    compressed = normal(COMPRESSED_RECORD, bytes(cramjam.snappy.compress_raw(plain)))
    assert stream_message(normal(RECORD, plain)) == stream_message(compressed)


@pytest.mark.parametrize("operation", [BATCH_PART, BATCH_COMMIT])
def test_part_of_a_batch_has_the_record_and_its_batch(operation: int) -> None:
    found = stream_message(normal(operation, b"\x02\x00b1" + b"\x81\x01" + bytes((RECORD,)) + message(4, b"p")))
    assert found is not None
    assert (5, b"p", "b1", 129) == (found.sequence, found.payload, found.batch, found.batch_number)
    assert (operation == BATCH_COMMIT) == found.batch_commits


def test_record_that_only_takes_a_sequence_says_so() -> None:
    found = stream_message(normal(RECORD, message(4, b"", subject=b"", time_ns=0)))
    assert found is not None and found.skips


def test_record_that_is_cut_at_any_byte_is_refused() -> None:
    whole = message(41, b"value", header=HEADER)
    for size in range(len(whole) - 1):  # the flags may be missing
        with pytest.raises(Malformed, match="expected"):
            stream_message(normal(RECORD, whole[:size]))
    part = b"\x02\x00b1\x01"
    for size in range(len(part) + 1):
        with pytest.raises(Malformed, match="expected"):
            stream_message(normal(BATCH_PART, part[:size]))


def test_operation_that_a_batch_cannot_have_is_refused() -> None:
    with pytest.raises(Malformed, match="operation 6 in a batch; expected 4 or 14"):
        stream_message(normal(BATCH_PART, b"\x02\x00b1\x01\x06{}"))


def test_compressed_record_that_claims_gigabytes_is_refused() -> None:
    with pytest.raises(Malformed, match=f"reader takes at most {limits.LOG_BATCH_BYTES_MAX}"):
        stream_message(normal(COMPRESSED_RECORD, b"\xff\xff\xff\xff\x0fabc"))


def test_messages_of_an_append_entry_are_its_records_alone() -> None:
    records = [b"\x04" + message(at, b"m%d" % at) for at in range(3)]
    found = append_entry(appended(1, records[0], b"\x06{}", records[1], records[2]))
    assert [(1, b"m0"), (2, b"m1"), (3, b"m2")] == [(e.sequence, e.payload) for e in stream_messages(found)]


def test_gap_has_its_sequences() -> None:
    assert (5, 8) == gap(normal(GAP, b'{"First":5,"Num":3}\n'))
    assert gap(normal(RECORD, b"")) is None
    for wrong in (b"", b"{}", b"[]", b'{"First":"5","Num":3}', b'{"First":5,"Num":-3}', b"[" * 150):
        with pytest.raises(Malformed, match="gap"):
            gap(normal(GAP, wrong))


def test_header_is_its_lines() -> None:
    assert ((b"Nats-Msg-Id", b"id-1"), (b"A", b"b: c"), (b"A", b"")) == header_lines(HEADER)
    assert ((b"", b"503"),) == header_lines(b"NATS/1.0 503\r\n\r\n")
    assert () == header_lines(b"")
    for wrong in (b"HTTP/1.0\r\n", b"NATS/1.0\r\nno colon\r\n\r\n"):
        with pytest.raises(Malformed, match="header"):
            header_lines(wrong)


def test_header_of_too_many_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_RECORD_HEADERS_MAX", 3)
    with pytest.raises(Malformed, match="this reader takes at most 3"):
        header_lines(HEADER)
