"""Batches of the client are read by the harness's log reader and accepted by the broker."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from harness.logs.record import sent_digest
from harness.model import UsageError
from targets.broker.core.messages import ErrorCode
from targets.broker.log import split_produced
from targets.kafka_family.clients.batches import CODECS, write_batch
from targets.kafka_family.logs.batch import walk
from targets.kafka_family.logs.codec import codec_name
from targets.kafka_family.logs.records import records_of


def test_bytes_of_a_batch_are_as_kafka_has_them() -> None:
    """Source: Apache Kafka, DefaultRecordBatch and DefaultRecord, written down by hand."""
    record = bytes([0x00, 0x00, 0x00, 0x01, 0x04]) + b"m1" + bytes([0x00])
    records = bytes([len(record) << 1]) + record
    covered = struct.pack(">hiqqqhii", 0, 0, -1, -1, -1, -1, -1, 1) + records
    head = struct.pack(">qiibI", 0, 9 + len(covered), -1, 2, crc32c(covered))
    assert head + covered == write_batch([b"m1"], "none")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 3, 200])
def test_batch_reads_back_under_every_codec(codec: str, count: int) -> None:
    values = [b"%d-" % at + b"x" * (at % 130) for at in range(count)]
    written = write_batch(values, codec)
    found = walk(written)
    assert ("", 1) == (found.stopped, len(found.headers))
    (header,) = found.headers
    assert (codec, 0, count - 1, -1) == (
        codec_name(header.codec_id),
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
    )
    assert [(at, -1, None, value) for at, value in enumerate(values)] == [
        (record.offset, record.timestamp, record.key, record.value) for record in records_of(header)
    ]


def test_records_have_the_time_that_is_asked_for() -> None:
    (header,) = walk(write_batch([b"m1", b"m2"], "gzip", time_ms=1_700_000_000_123)).headers
    assert [1_700_000_000_123] * 2 == [record.timestamp for record in records_of(header)]


@pytest.mark.parametrize("codec", CODECS)
def test_broker_takes_a_batch_and_refuses_it_with_one_bit_changed(codec: str) -> None:
    written = write_batch([b"m1", b"m2"], codec)
    batches, error, _ = split_produced(written)
    assert (ErrorCode.NONE, [(0, 1)]) == (error, [(b.base_offset, b.last_offset) for b in batches])
    damaged = written[:-1] + bytes([written[-1] ^ 1])
    assert ErrorCode.CORRUPT_MESSAGE == split_produced(damaged)[1]


def test_codecs_are_all_that_kafka_has_by_its_numbers() -> None:
    assert {name: number for name, (number, _) in CODECS.items()} == {codec_name(n): n for n in range(5)}


def test_batch_of_nothing_or_under_no_codec_is_refused() -> None:
    with pytest.raises(UsageError, match="a batch of no records"):
        write_batch([], "none")
    with pytest.raises(UsageError, match=r"unknown codec 'gzp'.*Did you mean 'gzip'"):
        write_batch([b"x"], "gzp")


def test_blocks_of_an_lz4_frame_do_not_depend_on_each_other() -> None:
    """Apache Kafka 3.9.1 answers UNKNOWN_SERVER_ERROR to a frame of linked blocks: it reads none."""
    frame = CODECS["lz4"][1](b"0123456789" * 20_000)  # several blocks of 64 KiB
    assert b"\x04\x22\x4d\x18" == frame[:4]
    version, independent = frame[4] >> 6, frame[4] & 0x20
    assert (1, 0x20) == (version, independent)


def test_tombstone_has_its_key_and_no_value_and_is_known_by_its_header() -> None:
    (header,) = walk(write_batch([b"k2/~p1.7", b"k2/p1.8"], "none")).headers
    first, second = records_of(header)
    assert (b"k2", None, ((b"fencepost", b"k2/~p1.7"),)) == (first.key, first.value, first.headers)
    assert (b"k2", b"k2/p1.8", ()) == (second.key, second.value, second.headers)
    assert ["k2/~p1.7", "k2/p1.8"] == [record.value_text for record in (first, second)]
    assert [sent_digest("k2/~p1.7"), sent_digest("k2/p1.8")] == [record.digest for record in (first, second)]
