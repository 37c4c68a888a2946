"""
Read one replica's log from its directory: batches, records, checkpoints, and what could not be read.

The scan reads the files of any broker in Kafka's format, and never writes to them. Damage becomes a problem text,
not an exception: a scan after a power loss must report what it found.

    DATA_DIRECTORY/replication-offset-checkpoint     the high watermark of every partition
    DATA_DIRECTORY/TOPIC-PARTITION/NNNN.log          segments, named by their first offset (files.py)
    DATA_DIRECTORY/TOPIC-PARTITION/leader-epoch-checkpoint

Only regular files are opened, and no link below the data directory is followed (harness/beneath.py).

A broker may write to the log meanwhile. If files vanished or shrank, or the log ends inside a write, the scan
reads the log again, until the result is one state of the log or SETTLE_S_MAX have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from harness.beneath import Folder
from harness.cleanup.process import until
from harness.events import Batch, Snapshot
from harness.logdir import checkpoint
from harness.logdir.checkpoint import CheckpointError
from harness.logdir.data import DataFolder, find_partitions, name_of, parse
from harness.logdir.files import NO_FILES, has_grown, is_disturbed, is_locked, list_log
from harness.logdir.names import shown
from harness.logdir.reading import BatchSeen, Findings, read_segments

__all__ = [
    "BatchSeen",
    "ReplicaLog",
    "Scan",
    "find_partitions",
    "name_of",
    "scan_in",
    "scan_partition",
    "settled",
    "snapshot_events",
]

# How long a log may keep changing while it is read. A write takes milliseconds.
SETTLE_S_MAX: Final = 2.0

T = TypeVar("T")


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


def scan_partition(directory: Path) -> ReplicaLog:
    """
    Read one partition directory; anything unreadable becomes a problem of the result.

    Links in the path of its data directory are followed; the partition's directory must not be one.

    Raises:
        UsageError: The directory's name is not TOPIC-PARTITION.
    """
    name_of(directory)
    with DataFolder.at(directory.parent) as data:
        return scan_in(data, directory.name)


def scan_in(data: DataFolder, name: str) -> ReplicaLog:
    """
    Read one partition's directory in an open data directory, as scan_partition does.

    Raises:
        UsageError: The directory's name is not TOPIC-PARTITION.
    """

    def read() -> tuple[ReplicaLog, str]:
        with Scan(data, name) as scan:
            batches = tuple(scan.batches())
            log, unsettled = scan.end()
        return replace(log, batches=batches), unsettled

    log, unsettled = settled(read)
    return replace(log, problems=(*log.problems, f"{shown(name)}: {unsettled}")) if unsettled else log


def settled(read: Callable[[], tuple[T, str]]) -> tuple[T, str]:
    """Return what `read` returns; call it again while it says that the log changed, for up to SETTLE_S_MAX."""
    found: list[tuple[T, str]] = []

    def is_settled() -> bool:
        found[:] = [read()]
        return not found[0][1]

    until(is_settled, SETTLE_S_MAX)
    return found[0]


class Scan:
    """
    One reading of one partition's directory: first its batches, then its end.

    The caller takes all batches before it asks for the end. Offsets, checkpoints and unreadable ranges that
    concern a batch are known when the batch is yielded.
    """

    def __init__(self, data: DataFolder, name: str, *, value_characters_max: int | None = None) -> None:
        """
        Read the checkpoints and list the log.

        Args:
            name: The directory's, in the data directory.
            value_characters_max: How much of a record's value is kept; None: all of it.

        Raises:
            UsageError: The name is not TOPIC-PARTITION.
        """
        self._data = data
        self._name = name
        self._value_characters_max = value_characters_max
        self.topic, self.partition = parse(name, data.folder.path / name)
        self.found = Findings(locked=is_locked(data.folder))
        # Read before the records: a high watermark read after them could lie beyond their end.
        self._high_watermark = self._kept(checkpoint.HIGH_WATERMARKS)
        self.start = self._kept(checkpoint.LOG_STARTS) or 0
        self.cleaned_to = self._kept(checkpoint.CLEANED) or 0
        self._folder: Folder | None = self.found.attempt(name, lambda: data.folder.folder(name))
        self._before = NO_FILES
        self.epochs: tuple[tuple[int, int], ...] | None = None
        self.topic_id: str | None = None
        if self._folder is not None:
            folder = self._folder
            self.epochs = self.found.attempt(checkpoint.LEADER_EPOCHS, lambda: checkpoint.read_epochs(folder))
            self.topic_id = self.found.attempt(checkpoint.TOPIC_ID, lambda: checkpoint.read_topic_id(folder))
            self._before = self.found.attempt(name, lambda: list_log(folder)) or NO_FILES

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.close()

    def batches(self) -> Iterator[BatchSeen]:
        """Yield the batches in file order."""
        if self._folder is None:
            self.found.unread.append((0, None))
            return
        for batch in read_segments(self.found, self._folder, self._before, self._value_characters_max):
            self.start = max(self.start, self.found.start)
            self.cleaned_to = max(self.cleaned_to, self.found.cleaned_to)
            yield batch
        self.start = max(self.start, self.found.start)
        self.cleaned_to = max(self.cleaned_to, self.found.cleaned_to)

    def end(self) -> tuple[ReplicaLog, str]:
        """Return the log without its batches, and why it may mix two states of the log, "" if it does not."""
        log = ReplicaLog(
            topic=self.topic,
            partition=self.partition,
            log_start_offset=self.start,
            log_end_offset=max(self.found.end, self.start),
            batches=(),
            epochs=self.epochs,
            high_watermark=self._high_watermark,
            cleaned_to=self.cleaned_to,
            topic_id=self.topic_id,
            problems=tuple(self.found.problems),
            unread=tuple(self.found.unread),
            remarks=tuple(self.found.remarks),
        )
        return log, "" if self._folder is None else self._unsettled(self._folder)

    def slice(self, first: int | None, end: int | None, batches: tuple[BatchSeen, ...]) -> ReplicaLog:
        """Return the log of the offsets [first, end) with these batches; None is the log's own start or end."""
        start = self.start if first is None else max(self.start, first)
        stop = max(self.found.end, self.start)
        stop = max(start, stop if end is None else min(end, stop))
        return ReplicaLog(
            topic=self.topic,
            partition=self.partition,
            log_start_offset=start,
            log_end_offset=stop,
            batches=batches,
            epochs=None,
            high_watermark=None,
            unread=tuple(unread for unread in self.found.unread if end is None or unread[0] < stop),
            cleaned_to=self.cleaned_to,
        )

    def give_up(self, why: str) -> None:
        """Report that the log was not read any further."""
        self.found.problems.append(f"{shown(self._name)}: {why}; the rest is not read")
        self.found.unread.append((self.found.end, None))

    def _unsettled(self, folder: Folder) -> str:
        try:
            after = list_log(folder)
        except OSError:
            after = self._before
        if self.found.gone or self._has_moved(folder) or is_disturbed(self._before, after):
            return f"its files kept changing for {SETTLE_S_MAX:g} s while they were read"
        if self.found.torn and (self.found.locked or has_grown(self._before, after)):
            return f"a broker is writing to it, and did not finish its last write within {SETTLE_S_MAX:g} s"
        return ""

    def _has_moved(self, folder: Folder) -> bool:
        """Return True if the epochs or the cleaner's offset are no longer those that the log was read with."""
        try:
            epochs = checkpoint.read_epochs(folder)
            cleaned_to = self._data.offset(checkpoint.CLEANED, self.topic, self.partition) or 0
        except (CheckpointError, OSError):
            # They could not be read before either, or cannot now: that is a problem, and no change of the log.
            return False
        return epochs != self.epochs or cleaned_to > self.cleaned_to

    def _kept(self, name: str) -> int | None:
        return self.found.attempt(name, lambda: self._data.offset(name, self.topic, self.partition))


def _known(log: ReplicaLog) -> Iterator[tuple[int, int]]:
    """Yield what of a log could not be read, as far as it is known how long that is."""
    for first, end in log.unread:
        until = log.log_end_offset if end is None else end
        if first < until:
            yield first, until


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
        unread=tuple(_known(log)) or None,
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
