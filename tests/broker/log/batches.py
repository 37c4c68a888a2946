"""Hand-made record batches for the tests of the log and of the wire; the encoder is independent of the parser."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import cramjam
from crc32c import crc32c
from hypothesis import HealthCheck, settings

from targets.broker.core.messages import Batch, TopicPartition
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.batch import batch_of, parse_header
from targets.kafka_family.logs.message_set import records_of, walk

TP = TopicPartition("topic", 0)

# A slow example on a busy machine is not a failure.
drawn = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def raw_batch(
    *,
    base: int = 0,
    count: int = 1,
    epoch: int = -1,
    text: bytes = b"m",
    timestamp: int = 1000,
    attributes: int = 0,
    magic: int = 2,
    delta: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Build one batch's bytes; `text` replaces the records, which these tests never parse."""
    last_delta = count - 1 if delta is None else delta
    times = (timestamp, timestamp + last_delta)
    producer = (producer_id, producer_epoch, base_sequence)
    covered = struct.pack(">hiqqqhii", attributes, last_delta, *times, *producer, count)
    covered += text
    return struct.pack(">qiibI", base, len(covered) + 9, epoch, magic, crc32c(covered)) + covered


def varint(number: int) -> bytes:
    """Write a zigzag varint."""
    left = number << 1 if number >= 0 else -2 * number - 1
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*written, left))


def with_length(value: bytes | None) -> bytes:
    """Write bytes after their length, -1 for none."""
    return varint(-1) if value is None else varint(len(value)) + value


def raw_record(
    delta: int,
    *,
    key: bytes | None = None,
    value: bytes | None = b"m",
    time: int = 0,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> bytes:
    """Write one record of a batch."""
    body = b"\0" + varint(time) + varint(delta) + with_length(key) + with_length(value) + varint(len(headers))
    body += b"".join(with_length(name) + with_length(content) for name, content in headers)
    return with_length(body)


def raw_records(count: int) -> bytes:
    """Write `count` small records."""
    return b"".join(raw_record(delta) for delta in range(count))


COMPRESSORS: Final[dict[int, Callable[[bytes], bytes]]] = {
    0: bytes,
    1: lambda data: bytes(cramjam.gzip.compress(data)),
    2: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}


def produced_batch(*, count: int = 1, codec: int = 0, records: bytes | None = None, **fields: int) -> bytes:
    """Build one batch as a producer sends it, with whole records, compressed by Kafka's codec of that number."""
    text = COMPRESSORS[codec](raw_records(count) if records is None else records)
    return raw_batch(count=count, text=text, attributes=codec, **fields)


def batch(**fields: object) -> Batch:
    """Build one batch as the core sees it."""
    raw = raw_batch(**fields)  # type: ignore[arg-type]
    return batch_of(parse_header(raw), raw)


def singles(log: FileLog, count: int, *, epoch: int = 0) -> None:
    """Append `count` batches of one record each as leader, each with a different text."""
    for _ in range(count):
        log.append_as_leader([batch(text=b"%d" % log.end_offset)], epoch)


def new_log(folder: Path, **options: object) -> FileLog:
    """Create an empty log in its own data directory."""
    folder.mkdir(exist_ok=True)
    return FileLog.create(TP, folder / str(TP), LogOptions(**options))  # type: ignore[arg-type]


def offsets(batches: tuple[Batch, ...]) -> list[tuple[int, int]]:
    """Return (base, last) of every batch."""
    return [(b.base_offset, b.last_offset) for b in batches]


def all_of(log: FileLog) -> tuple[Batch, ...]:
    """Read the whole log."""
    return log.read(log.start_offset, log.end_offset, 1 << 30)


def digests(batches: tuple[Batch, ...]) -> list[str]:
    """Return the digest of every record, as the reader of logs computes it."""
    headers = walk(b"".join(bytes(batch.payload) for batch in batches)).headers
    return [record.digest for header in headers for record in records_of(header)]
