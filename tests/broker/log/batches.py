"""Hand-made record batches for the tests of the log and of the wire; the encoder is independent of the parser."""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c
from hypothesis import HealthCheck, settings

from harness.logdir.message_set import records_of, walk
from targets.broker.core.messages import Batch, TopicPartition
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.batch import batch_of, parse_header

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
) -> bytes:
    """Build one batch's bytes; `text` replaces the records, which these tests never parse."""
    last_delta = count - 1 if delta is None else delta
    covered = struct.pack(
        ">hiqqqhii", attributes, last_delta, timestamp, timestamp + last_delta, -1, -1, -1, count
    )
    covered += text
    return struct.pack(">qiibI", base, len(covered) + 9, epoch, magic, crc32c(covered)) + covered


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
