"""
Read one replica's log from its directory: batches, records, checkpoints, and what could not be read.

Knows Kafka's files and nothing of who wrote them; opens them for reading only. Whatever is wrong with them
becomes a problem text, never an exception: a scan after a power loss must tell what it found.

    DATA_DIRECTORY/replication-offset-checkpoint     the high watermark of every partition
    DATA_DIRECTORY/TOPIC-PARTITION/NNNN.log          segments, named by their first offset (files.py)
    DATA_DIRECTORY/TOPIC-PARTITION/leader-epoch-checkpoint

A broker may be at work on the log meanwhile: what was read while files went, shrank or were in the middle of a
write is read again, until it is one state of the log or SETTLE_S_MAX have passed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.cleanup.process import until
from harness.events import Batch, Snapshot
from harness.logdir import checkpoint
from harness.logdir.files import NO_FILES, SEGMENT_NAME, has_grown, is_disturbed, is_locked, list_log
from harness.logdir.reading import BatchSeen, Findings, read_segments
from harness.model import UsageError

__all__ = ["BatchSeen", "ReplicaLog", "find_partitions", "name_of", "scan_partition", "snapshot_events"]

# How long a log may go on changing under whoever reads it. A write is over in milliseconds.
SETTLE_S_MAX: Final = 2.0

# `-delete`, `-future` and `-stray` directories do not end in a number and so are no partitions.
_PARTITION_NAME: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_PARTITION_FILES: Final = (checkpoint.LEADER_EPOCHS, checkpoint.TOPIC_ID)
_DATA_FILES: Final = (checkpoint.HIGH_WATERMARKS, "meta.properties")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """
    One replica's log as its files tell it.

    Shapes:  log_end_offset is exclusive: the end of the last sound batch, or the last segment's first offset
             when it is empty. batches stand in file order. epochs are the checkpoint's (epoch, start offset),
             None when there is no such file or it cannot be read; high_watermark likewise. problems say what
             could not be read (what is read but out of order is the batch's own problem); unread are the
             [first, end) ranges of offsets that this may concern, end None when it is not known.
             cleaned_to: below it the log was compacted, so that missing offsets mean nothing; 0 when never.
             topic_id: the cluster's id for the topic, None where it has none. remarks are worth telling and no
             fault, as that a broker was at work on the log.
    """

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    batches: tuple[BatchSeen, ...]
    epochs: tuple[tuple[int, int], ...] | None
    high_watermark: int | None
    problems: tuple[str, ...] = ()
    unread: tuple[tuple[int, int | None], ...] = ()
    cleaned_to: int = 0
    topic_id: str | None = None
    remarks: tuple[str, ...] = ()


def find_partitions(directory: Path) -> list[Path]:
    """
    Give the partition directories: the directory itself when it is one, else those in it; [] when none.

    Raises:  UsageError when the directory cannot be listed.
    """
    try:
        if _is_partition(directory):
            return [directory]
        data = any((directory / name).exists() for name in _DATA_FILES)
        return sorted(
            child
            for child in directory.iterdir()
            if child.is_dir()
            and _PARTITION_NAME.fullmatch(child.name)
            # An empty directory may be what a power loss left of a replica, where it lies among others.
            and (data or _is_partition(child))
        )
    except OSError as error:
        raise UsageError(
            f"{error.filename or directory}: {error.strerror}; expected a directory that can be listed"
        ) from error


def name_of(directory: Path) -> tuple[str, int]:
    """
    Give the (topic, partition) that a partition directory is named after.

    Raises:  UsageError when the name is not TOPIC-PARTITION.
    """
    match = _PARTITION_NAME.fullmatch(directory.resolve().name)
    if match is None:
        raise UsageError(f"{directory}: the directory's name is not TOPIC-PARTITION, as in `orders-0`")
    return match["topic"], int(match["partition"])


def scan_partition(directory: Path) -> ReplicaLog:
    """
    Read one partition directory whole; whatever cannot be read is a problem in what it gives.

    Raises:  UsageError when the directory's name is not TOPIC-PARTITION.
    """
    name_of(directory)
    found: list[tuple[ReplicaLog, str]] = []

    def settled() -> bool:
        found[:] = [_scan(directory)]
        return not found[0][1]

    until(settled, SETTLE_S_MAX)
    log, unsettled = found[0]
    return replace(log, problems=(*log.problems, f"{directory.name}: {unsettled}")) if unsettled else log


def _scan(directory: Path) -> tuple[ReplicaLog, str]:
    """Read the directory once; say why that may be no state that the log ever had, "" when it is one."""
    topic, partition = name_of(directory)
    data = directory.resolve().parent
    found = Findings(locked=is_locked(data))

    def kept(name: str) -> int | None:
        return found.attempt(lambda: checkpoint.read_offset(data / name, topic, partition))

    # Before the records that it is about: read after them, it could lie beyond the end that was read.
    high_watermark = kept(checkpoint.HIGH_WATERMARKS)
    epochs_file = directory / checkpoint.LEADER_EPOCHS
    as_was = epochs_file.read_bytes() if epochs_file.is_file() else b""
    before = found.attempt(lambda: list_log(directory)) or NO_FILES
    start, end = read_segments(found, directory, before)
    start = max(start, kept(checkpoint.LOG_STARTS) or 0)
    log = ReplicaLog(
        topic=topic,
        partition=partition,
        log_start_offset=start,
        log_end_offset=max(end, start),
        batches=tuple(found.batches),
        epochs=found.attempt(lambda: checkpoint.read_epochs(epochs_file)),
        high_watermark=high_watermark,
        cleaned_to=max(kept(checkpoint.CLEANED) or 0, found.cleaned_to),
        topic_id=found.attempt(lambda: checkpoint.read_topic_id(directory / checkpoint.TOPIC_ID)),
        problems=tuple(found.problems),
        unread=tuple(found.unread),
        remarks=tuple(found.remarks),
    )
    as_is = epochs_file.read_bytes() if epochs_file.is_file() else b""
    after = found.attempt(lambda: list_log(directory)) or before
    if found.gone or as_was != as_is or is_disturbed(before, after):
        return log, f"its files went on changing for {SETTLE_S_MAX:g} s while they were read"
    if found.torn and (found.locked or has_grown(before, after)):
        return log, f"a broker is at work on it, and did not end the write at its end within {SETTLE_S_MAX:g} s"
    return log, ""


def snapshot_events(log: ReplicaLog) -> list[Snapshot | Batch]:
    """Return what a history has of a replica's log: its snapshot, then each batch."""
    snapshot = Snapshot(
        topic=log.topic,
        partition=log.partition,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        epochs=log.epochs,
        problems=log.problems,
        batches=len(log.batches),
    )
    batches = (
        Batch(
            topic=log.topic,
            partition=log.partition,
            base=batch.base,
            last=batch.last,
            epoch=batch.epoch,
            magic=batch.magic,
            crc=batch.crc,
            codec=batch.codec,
            position=batch.position,
            segment=batch.segment,
            records=batch.records,
            problem=batch.problem,
            control=batch.control or None,
        )
        for batch in log.batches
    )
    return [snapshot, *batches]


def _is_partition(directory: Path) -> bool:
    return any(
        entry.name in _PARTITION_FILES or SEGMENT_NAME.fullmatch(entry.name) for entry in directory.iterdir()
    )
