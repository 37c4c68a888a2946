"""Message sets of formats v0 and v1 are read whole, also next to newer batches, and refused where damaged."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from targets.kafka_family.logs import batch, records
from targets.kafka_family.logs.codec import CodecError
from targets.kafka_family.logs.message_set import iterate, records_of, walk
from targets.kafka_family.logs.records import RecordError
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.build import CODECS, compress
from tests.targets.kafka_family.logs.build import batch as build_batch
from tests.targets.kafka_family.logs.scans import find_partitions, scan_partition

LOG_APPEND_TIME = 0x08
TIME = 1_500_000_000_000
WRITTEN = find_partitions(DATA / "kafka-0.10.2.2" / "b1")


def message(
    offset: int,
    value: bytes | None = b"value",
    *,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    time: int = TIME,
) -> bytes:
    body = struct.pack(">bB", magic, attributes) + (struct.pack(">q", time) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapped(offset: int, inner: Sequence[bytes], *, codec: str = "gzip", magic: int = 1, flags: int = 0) -> bytes:
    value = compress(codec, b"".join(inner))
    return message(offset, value, magic=magic, attributes=CODECS[codec] | flags)


@pytest.mark.parametrize("magic", [0, 1])
def test_message_stands_for_itself(magic: int) -> None:
    data = message(7, b"seven", key=b"k", magic=magic)
    (header,) = walk(data).headers
    (record,) = records_of(header)
    assert (7, 7, -1, magic, 0, len(data)) == (
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.magic,
        header.position,
        header.size,
    )
    assert (7, TIME if magic else -1, b"k", b"seven") == (
        record.offset,
        record.timestamp,
        record.key,
        record.value,
    )


def test_messages_follow_each_other_and_a_null_value_is_none() -> None:
    data = message(3, None) + message(4, b"")
    walked = walk(data)
    assert [None, b""] == [records_of(header)[0].value for header in walked.headers]
    assert (len(data), "") == (walked.sound_bytes, walked.stopped)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_compressed_messages_of_v1_count_from_the_last_of_them(codec: str) -> None:
    data = wrapped(12, [message(number, b"%d" % number) for number in range(3)], codec=codec)
    (header,) = walk(data).headers
    assert (10, 12, 3, CODECS[codec]) == (
        header.base_offset,
        header.last_offset,
        header.record_count,
        header.codec_id,
    )
    assert [(10, b"0"), (11, b"1"), (12, b"2")] == [(r.offset, r.value) for r in records_of(header)]


def test_compressed_messages_are_in_memory_once() -> None:
    """A bomb of small messages would else take several times what it opens to."""
    inner = b"".join(message(at, b"%0500d" % at) for at in range(4_000))
    data = wrapped(3_999, [inner])
    tracemalloc.start()
    try:
        (header,) = walk(data).headers
        seen = sum(1 for _ in iterate(header))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (0, 4_000, True) == (header.base_offset, seen, peak_bytes < 1.5 * len(inner)), peak_bytes


def test_compressed_messages_of_v0_have_offsets_of_their_own() -> None:
    data = wrapped(12, [message(10, magic=0), message(12, magic=0)], magic=0)
    (header,) = walk(data).headers
    assert [10, 12] == [record.offset for record in records_of(header)]


def test_time_is_the_outer_one_where_the_broker_stamped_it() -> None:
    data = wrapped(1, [message(0, time=5), message(1, time=6)], flags=LOG_APPEND_TIME)
    (header,) = walk(data).headers
    assert {TIME} == {record.timestamp for record in records_of(header)}


def test_equal_content_has_the_digest_of_a_newer_batch() -> None:
    (old,) = walk(message(0, b"v", key=b"k")).headers
    newer = records.Record(offset=0, timestamp=TIME, key=b"k", value=b"v")
    assert newer.digest == records_of(old)[0].digest


@pytest.mark.parametrize("cut", range(1, len(message(1))))
def test_walk_stops_where_a_message_is_cut_short(cut: int) -> None:
    whole = message(0)
    walked = walk(whole + message(1)[:cut])
    assert ([0], len(whole)) == ([header.base_offset for header in walked.headers], walked.sound_bytes)
    assert walked.stopped and walked.short


@pytest.mark.parametrize("place", range(12, len(message(0))))
def test_walk_stops_where_a_bit_is_flipped(place: int) -> None:
    damaged = bytearray(message(0))
    damaged[place] ^= 0x40
    assert () == walk(bytes(damaged)).headers


def test_message_that_goes_back_is_sound_and_carries_the_finding() -> None:
    walked = walk(message(5) + message(4) + message(6))
    assert ["", "base offset is 4; expected 6 or later, the end of the batch before it", ""] == [
        header.problem for header in walked.headers
    ]


def test_batches_and_messages_are_read_one_after_the_other() -> None:
    pieces = [message(0), message(1), build_batch(2, "a", "b"), message(4), build_batch(5, "c")]
    walked = walk(b"".join(pieces))
    assert [(0, 1), (1, 1), (2, 2), (4, 1), (5, 2)] == [(h.base_offset, h.magic) for h in walked.headers]
    assert [sum(map(len, pieces[:n])) for n in range(5)] == [header.position for header in walked.headers]
    assert [1, 1, 2, 1, 1] == [len(records_of(header)) for header in walked.headers]
    assert (len(b"".join(pieces)), "", False) == (walked.sound_bytes, walked.stopped, walked.short)


def test_batches_alone_are_read_as_ever() -> None:
    data = build_batch(0, "a") + build_batch(1, "b") + b"\0" * 70
    assert batch.walk(data) == walk(data)


def test_compressed_message_that_does_not_open_is_seen_without_its_records() -> None:
    (header,) = walk(message(9, b"rubbish", attributes=CODECS["gzip"])).headers
    assert (9, 9) == (header.base_offset, header.last_offset)
    with pytest.raises(CodecError, match="gzip: 7 bytes do not decompress"):
        records_of(header)


@pytest.mark.parametrize(
    ("inner", "complaint"),
    [
        (b"\0" * 5, "expected a message"),
        (struct.pack(">qi", 0, 99), r"message length is 99; expected one that fits"),
        (struct.pack(">qiIbBqii", 0, 22, 0, 1, 0, TIME, -1, 9), r"a field's length is 9; 0 bytes are left"),
        (struct.pack(">qiIbBqiib", 0, 23, 0, 1, 0, TIME, -1, -1, 0), "1 bytes follow its value; expected none"),
    ],
)
def test_compressed_message_is_refused_when_what_it_holds_is_none(inner: bytes, complaint: str) -> None:
    (header,) = walk(wrapped(9, [inner])).headers
    with pytest.raises(RecordError, match=complaint):
        records_of(header)


@pytest.mark.parametrize("directory", WRITTEN, ids=lambda path: path.name)
def test_scan_reads_every_record_when_kafka_0_10_wrote_the_directory(directory: Path) -> None:
    """tests/make_kafka_logs.py writes two batches of three records under each of two leaders."""
    log = scan_partition(directory)
    topic = directory.name.removesuffix("-0")
    rest = "and the same again and again and again"
    expected = [
        f"{topic}, epoch of leader {leader}, batch {number}, record {index}, {rest}"
        for leader in (1, 2)
        for number in (0, 1)
        for index in range(3)
    ]
    assert (expected, list(range(12))) == (
        [value for each in log.batches for _, _, value in each.records],
        [offset for each in log.batches for offset, _, _ in each.records],
    )
    assert ((), 12, 12, None) == (log.problems, log.log_end_offset, log.high_watermark, log.epochs)
    codec = topic.removeprefix("broker-")
    assert {codec if codec in ("gzip", "snappy", "lz4") else "none"} == {each.codec for each in log.batches}
    assert {(1, -1)} == {(each.magic, each.epoch) for each in log.batches}
    other = scan_partition(DATA / "kafka-0.10.2.2" / "b2" / directory.name)
    assert other.batches == log.batches
