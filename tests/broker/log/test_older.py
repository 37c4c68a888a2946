"""Batches written in message format 1: their contents stay, as three readers say, and logs hold both formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from targets.broker.core.log_port import FormatError, LeoAfterCut
from targets.broker.core.messages import Batch, ErrorCode
from targets.broker.log import LogOptions
from targets.broker.log.batch import batch_of, parse_header
from targets.broker.log.older import as_messages
from targets.broker.log.recovery import Known, open_log
from targets.broker.log.stored import split_stored
from targets.kafka_family.logs.message_set import records_of, walk
from tests.broker.log.batches import (
    COMPRESSORS,
    TP,
    all_of,
    drawn,
    new_log,
    offsets,
    produced_batch,
    raw_batch,
    raw_record,
)
from tests.targets.kafka_family.logs.scans import scan_partition

CODECS = tuple(codec for codec in COMPRESSORS if codec != 4)
Row = tuple[int, bytes | None, bytes | None]
ROWS = st.lists(
    st.tuples(
        st.integers(-(2**31), 2**31),
        st.none() | st.binary(max_size=80),
        st.none() | st.binary(max_size=300),
    ),
    min_size=1,
    max_size=12,
)


def sent(rows: list[Row], *, codec: int = 0, timestamp: int = 10**12, append_time: bool = False) -> Batch:
    """Return a producer's batch of these records: (time delta, key, value)."""
    records = b"".join(
        raw_record(delta, key=key, value=value, time=time) for delta, (time, key, value) in enumerate(rows)
    )
    raw = raw_batch(
        count=len(rows),
        text=COMPRESSORS[codec](records),
        timestamp=timestamp,
        attributes=codec | (8 if append_time else 0),
    )
    return batch_of(parse_header(raw), raw)


def simple(count: int = 1, *, codec: int = 0, text: bytes = b"m") -> Batch:
    return sent([(0, None, text)] * count, codec=codec)


def bytes_of(batch: Batch, base: int) -> bytes:
    return b"".join(bytes(piece) for _, pieces in as_messages(batch, base) for piece in pieces)


@drawn
@given(rows=ROWS, codec=st.sampled_from(CODECS), base=st.integers(0, 2**40), append_time=st.booleans())
def test_records_keep_offset_time_key_and_value(rows: list[Row], codec: int, base: int, append_time: bool) -> None:
    """Source: KIP-31, KIP-32: offsets, timestamps and their type are what they were; read by the harness."""
    batch = sent(rows, codec=codec, append_time=append_time)
    data = bytes_of(batch, base)
    found = walk(data)
    records = [record for header in found.headers for record in records_of(header)]
    latest = 10**12 + len(rows) - 1  # as the header of the batch has it
    times = [latest if append_time else 10**12 + time for time, _, _ in rows]
    if codec and append_time:
        times = [records[0].timestamp] * len(rows)
    assert {1} == {header.magic for header in found.headers}
    assert list(range(base, base + len(rows))) == [record.offset for record in records]
    assert times == [record.timestamp for record in records]
    assert [(key, value) for _, key, value in rows] == [(record.key, record.value) for record in records]
    # A follower splits the same bytes into the batches that its leader has stored.
    split, error, text = split_stored(data)
    assert (ErrorCode.NONE, "") == (error, text)
    stored = [each for each, _ in as_messages(batch, base)]
    assert [(each.last_offset, each.crc, each.size) for each in stored] == [
        (each.last_offset, each.crc, each.size) for each in split
    ]
    assert {-1} == {each.leader_epoch for each in stored}


@drawn
@given(rows=ROWS, codec=st.sampled_from(CODECS))
def test_client_of_an_old_release_reads_the_same(rows: list[Row], codec: int) -> None:
    """Source: aiokafka's reader of message sets, which this repository has not written."""
    records, reader = [], MemoryRecords(bytes_of(sent(rows, codec=codec), 40))
    while (batch := reader.next_batch()) is not None:
        assert batch.validate_crc()
        records += list(batch)
    assert [(40 + delta, 10**12 + time, key, value) for delta, (time, key, value) in enumerate(rows)] == [
        (record.offset, record.timestamp, record.key, record.value) for record in records
    ]


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (simple(codec=4), "zstd; expected another codec"),
        (
            produced_batch(count=1, records=raw_record(0, headers=[(b"a", b"b")])),
            "record 0 has 1 headers; expected 0",
        ),
    ],
)
def test_what_a_message_cannot_hold_is_refused_and_nothing_is_written(
    batch: Batch | bytes, text: str, tmp_path: Path
) -> None:
    """Source: KIP-82, KIP-110; Kafka, MemoryRecordsBuilder ("Magic v1 does not support record headers")."""
    unfit = batch_of(parse_header(batch), batch) if isinstance(batch, bytes) else batch
    log = new_log(tmp_path)
    with pytest.raises(FormatError, match=text):
        log.append_as_leader([simple(), unfit], 3, 1)
    assert (0, 0) == (log.end_offset, log.size_bytes)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("clean", [True, False])
def test_log_that_holds_both_formats_is_recovered_as_it_was(tmp_path: Path, codec: int, clean: bool) -> None:
    """Source: KIP-101, Compatibility; KAFKA-7897: only the batches behind the last message have an epoch."""
    log = new_log(tmp_path, segment_bytes=200)
    assert (0, 3) == log.append_as_leader([simple(3, codec=codec)], 1, 2)
    assert (3, 8) == log.append_as_leader([simple(3, codec=codec), simple(2, codec=codec)], 2, 1)
    assert (8, 12) == log.append_as_leader([simple(4, codec=codec)], 5, 2)
    before = offsets(all_of(log))
    log.flush()
    log.close()
    again, found = open_log(TP, log.directory, Known(clean=clean), LogOptions())
    assert (0, "clean", ((1, 0), (-1, 3), (5, 8))) == (found.cut_bytes, found.reason, found.batch_epochs)
    assert (before, 12) == (offsets(all_of(again)), again.end_offset)
    seen = scan_partition(log.directory)
    assert [] == list(seen.problems)
    assert list(range(12)) == [offset for each in seen.batches for offset, _, _ in each.records]
    assert [2, 1, 2] == [magic for magic, _ in _runs([each.magic for each in seen.batches])]


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][0] == number:
            found[-1] = (number, found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found


def test_message_is_cut_deleted_and_found_by_time_like_a_batch(tmp_path: Path) -> None:
    """Source: KIP-79 (times), KIP-107 (the start); a compressed message goes whole, as a batch does."""
    log = new_log(tmp_path, segment_bytes=150)
    for number in range(6):
        log.append_as_leader([sent([(0, None, b"m")] * 2, timestamp=1000 + 10 * number)], 1, 1 + number % 2)
    assert (4, 1020) == tuple(log.first_offset_at(1015))[:2]
    log.append_as_leader([simple(4, codec=1)], 1, 1)
    assert 12 == log.truncate_to(14, LeoAfterCut.PHYSICAL)
    assert 9 == log.truncate_to(9, LeoAfterCut.PHYSICAL)
    log.advance_start(5)
    assert (5, 9) == (log.start_offset, log.end_offset)
    assert all(each.next_offset > 4 for each in all_of(log))


def test_follower_has_its_leaders_bytes_where_both_formats_are(tmp_path: Path) -> None:
    """Source: KIP-101, Compatibility: a follower appends what it is sent, in whatever format."""
    leader, follower = new_log(tmp_path / "a"), new_log(tmp_path / "b", segment_bytes=150)
    for number in range(8):
        leader.append_as_leader([simple(3, codec=number % 3)], 1, 1 + number // 2 % 2)
    while follower.end_offset < leader.end_offset:
        data = b"".join(bytes(each.payload) for each in leader.read(follower.end_offset, 1_000, 200))
        batches, error, text = split_stored(data)
        assert (ErrorCode.NONE, "") == (error, text)
        follower.append_as_follower(batches)
    bytes_by_log = [b"".join(bytes(each.payload) for each in all_of(log)) for log in (leader, follower)]
    assert bytes_by_log[0] == bytes_by_log[1]
