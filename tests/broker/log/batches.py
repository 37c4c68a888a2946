"""Record batches made by hand for the log's and the wire's tests, apart from the code that reads them."""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c
from hypothesis import HealthCheck, settings

from targets.broker.core.messages import Batch, TopicPartition
from targets.broker.log import FileLog, LogOptions
from targets.broker.log.batch import batch_of, parse_header

TP = TopicPartition("topic", 0)

# A busy machine makes an example slow, and that is no failure.
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
    """Build one batch's bytes; `text` stands where records would, since nobody here reads them."""
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
    """Append `count` batches of one record each as leader, with texts that tell them apart."""
    for _ in range(count):
        log.append_as_leader([batch(text=b"%d" % log.end_offset)], epoch)


def new_log(folder: Path, **options: object) -> FileLog:
    """Make an empty log in a data directory of its own."""
    folder.mkdir(exist_ok=True)
    return FileLog.create(TP, folder / str(TP), LogOptions(**options))  # type: ignore[arg-type]


def offsets(batches: tuple[Batch, ...]) -> list[tuple[int, int]]:
    """Give (base, last) of every batch."""
    return [(b.base_offset, b.last_offset) for b in batches]


def all_of(log: FileLog) -> tuple[Batch, ...]:
    """Read the whole log."""
    return log.read(log.start_offset, log.end_offset, 1 << 30)
