"""
Read one replica's log from its directory: batches, records, checkpoints, and what could not be read.

The scan reads the files of any broker in Kafka's format, and never writes to them. Damage becomes a problem text,
not an exception: a scan after a power loss must report what it found.

    DATA_DIRECTORY/replication-offset-checkpoint     the high watermark of every partition
    DATA_DIRECTORY/TOPIC-PARTITION/NNNN.log          segments, named by their first offset (files.py)
    DATA_DIRECTORY/TOPIC-PARTITION/leader-epoch-checkpoint

A broker may write to the log meanwhile. If files vanished or shrank, or the log ends inside a write, the scan
reads the log again, until the result is one state of the log or SETTLE_S_MAX have passed.
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

# How long a log may keep changing while it is read. A write takes milliseconds.
SETTLE_S_MAX: Final = 2.0

# `-delete`, `-future` and `-stray` directories do not end in a number, so they do not match.
_PARTITION_NAME: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_PARTITION_FILES: Final = (checkpoint.LEADER_EPOCHS, checkpoint.TOPIC_ID)
_DATA_FILES: Final = (checkpoint.HIGH_WATERMARKS, "meta.properties")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """
    One replica's log, as read from its files.

    Attributes:
        log_end_offset: Exclusive: the end of the last sound batch, or the last segment's first offset if that
            segment is empty.
        batches: In file order.
        epochs: The checkpoint's (epoch, start offset) entries; None if there is no file, or it cannot be read.
        high_watermark: From the checkpoint; None if there is none, or it cannot be read.
        problems: What could not be read. A batch that was read but is out of order has its own problem text.
        unread: The [first, end) ranges of offsets that could not be read; end None if unknown.
        cleaned_to: The log was compacted below this offset, so that missing offsets there prove nothing; 0: never.
        topic_id: The cluster's id of the topic; None if it has none.
        remarks: Observations that are no fault, such as a running broker that holds the log.
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
    Return the partition directories: the directory itself if it is one, else those in it, which may be none.

    Raises:
        UsageError: The directory cannot be listed.
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
            # In a data directory, an empty directory may be what a power loss left of a replica.
            and (data or _is_partition(child))
        )
    except OSError as error:
        raise UsageError(
            f"{error.filename or directory}: {error.strerror}; expected a directory that can be listed"
        ) from error


def name_of(directory: Path) -> tuple[str, int]:
    """
    Return the (topic, partition) that a partition directory is named after.

    Raises:
        UsageError: The name is not TOPIC-PARTITION.
    """
    match = _PARTITION_NAME.fullmatch(directory.resolve().name)
    if match is None:
        raise UsageError(f"{directory}: the directory's name is not TOPIC-PARTITION, as in `orders-0`")
    return match["topic"], int(match["partition"])


def scan_partition(directory: Path) -> ReplicaLog:
    """
    Read one partition directory; anything unreadable becomes a problem of the result.

    Raises:
        UsageError: The directory's name is not TOPIC-PARTITION.
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
    """Read the directory once; also return why the result may mix two states of the log, "" if it does not."""
    topic, partition = name_of(directory)
    data = directory.resolve().parent
    found = Findings(locked=is_locked(data))

    def kept(name: str) -> int | None:
        return found.attempt(lambda: checkpoint.read_offset(data / name, topic, partition))

    # Read before the records: a high watermark read after them could lie beyond their end.
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
        return log, f"its files kept changing for {SETTLE_S_MAX:g} s while they were read"
    if found.torn and (found.locked or has_grown(before, after)):
        return log, f"a broker is writing to it, and did not finish its last write within {SETTLE_S_MAX:g} s"
    return log, ""


def snapshot_events(log: ReplicaLog) -> list[Snapshot | Batch]:
    """Return the events that a history has of a replica's log: its snapshot, then each batch."""
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
