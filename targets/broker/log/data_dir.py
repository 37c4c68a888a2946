"""
A broker's data directory: its logs, the checkpoints that cover all of them, and the clean-shutdown marker.

The marker counts once: opening removes it, durably (KAFKA-10471).
A broker starts even when a checkpoint cannot be read (KAFKA-16541): without recovery points every log is scanned
whole, without high watermarks they are 0.
Source:  Kafka, LogManager and CheckpointFile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from targets.broker.core.log_port import Recovery
from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.limits import Limits
from targets.broker.log import checkpoint
from targets.broker.log.beneath import Folder, make_data_directory, unlink
from targets.broker.log.deletion import NAME_BYTES_MAX, Deletions, Remove, remove_directories
from targets.broker.log.discards import Later, at_once
from targets.broker.log.file_log import FileLog
from targets.broker.log.names import TOPIC
from targets.broker.log.offsets import Durable, Offsets, replace_offsets
from targets.broker.log.open_files import OpenFiles
from targets.broker.log.options import SEGMENT_BYTES_DEFAULT, LogOptions
from targets.broker.log.recovery import Known, open_log
from targets.broker.log.survey import survey
from targets.broker.log.together import Together

_UNREADABLE: Final = "{}-unreadable"
_FILES_OPEN_MAX: Final = Limits().log_files_open_max
_PRODUCERS_MAX: Final = Limits().producers_max


class DataDir:
    """
    The logs of one broker, by partition, and its checkpoint files.

    Every write returns the (path relative to the data directory, length) pairs that it made durable, after it
    passed them to on_durable.

    Raises:
        OSError: from the disk.
        ValueError: Kafka does not allow the topic name, or the partition's name is too long for a directory.
    """

    def __init__(
        self,
        path: Path,
        *,
        segment_bytes: int,
        segment_ms: int = 0,
        on_durable: Callable[[str, int], None],
        files_open_max: int = _FILES_OPEN_MAX,
        producers_max: int = _PRODUCERS_MAX,
        remove: Remove = remove_directories,
        later: Later = at_once,
    ) -> None:
        together = Together()
        self.path = path
        self.logs: dict[TopicPartition, FileLog] = {}
        self._on_durable = on_durable
        self._options = LogOptions(
            segment_bytes=segment_bytes,
            segment_ms=segment_ms,
            on_durable=on_durable,
            before_cut=self._before_cut,
            before_start=self._keep_start,
            after_cleaning=self._keep_clean,
            after_deletion=self._forget,
            producers_max=producers_max,
            files=OpenFiles(files_open_max),
            together=together,
            deletions=Deletions(together, remove),
            later=later,
        )
        self._points = Offsets(path / checkpoint.RECOVERY_POINTS_FILE, together, on_durable)
        self._starts = Offsets(path / checkpoint.LOG_STARTS_FILE, together, on_durable)
        self._clean = Offsets(path / checkpoint.CLEANED_FILE, together, on_durable)
        # What the checkpoint of high watermarks holds, or is about to; the lock is held while it is written.
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._checkpointing = Lock()
        self._forgot: Durable = (checkpoint.HIGH_WATERMARKS_FILE, 0)

    def create_log(self, tp: TopicPartition, topic_id: int = NO_TOPIC_ID) -> FileLog:
        """
        Create an empty log for a partition that has none here.

        What the checkpoints say of a deleted log of that name is removed, durably before this one can have a
        record: recovery would take the offsets for this log's. Where that one started, an empty log would start
        and end: this goes before the new directory is there. Of an empty log recovery lowers the others itself.
        """
        if not TOPIC.fullmatch(tp.topic) or tp.partition < 0:
            raise ValueError(f"partition {tp}: expected 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', not . or ..")
        if len(str(tp)) > NAME_BYTES_MAX:
            raise ValueError(f"partition {tp}: {len(str(tp))} characters; expected at most {NAME_BYTES_MAX}")
        self._forget(tp)
        self._starts.forget(tp, at_once=True)
        with self._checkpointing:
            forgets = self._high_watermarks.pop(tp, None) is not None
        if forgets:
            self._options.together.add(self)
        log = FileLog.create(tp, self.path / str(tp), self._options)
        if topic_id != NO_TOPIC_ID:
            log.adopt(topic_id)
        self.logs[tp] = log
        return log

    def together(self) -> AbstractContextManager[None]:
        """Let epoch files and topics' ids wait until the end of this, and become durable side by side."""
        return self._options.together.opened()

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> list[Durable]:
        """Replace the high watermark checkpoint of all partitions, durably."""
        self.note_high_watermarks(high_watermarks)
        durable = self.write_noted()
        self._on_durable(*durable)
        return [durable]

    def note_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Note what the high watermark checkpoint is to hold, until `write_noted` writes it."""
        self._high_watermarks = dict(high_watermarks)

    def write_noted(self) -> Durable:
        """
        Write the high watermarks that were noted last, durably; on any thread. Whoever calls it reports it.

        A log that is made anew meanwhile is taken out first, or last: its old high watermark never stays.
        """
        with self._checkpointing:
            return replace_offsets(self.path / checkpoint.HIGH_WATERMARKS_FILE, self._high_watermarks)

    def settle(self) -> None:
        """Write the high watermarks without those of logs that were made anew, durably."""
        self._forgot = self.write_noted()

    def report(self) -> None:
        """Say that they are durable."""
        self._on_durable(*self._forgot)

    def write_recovery_points(self) -> list[Durable]:
        """Replace the recovery point checkpoint with the flushed ends of all logs, durably."""
        return [self._points.replace({tp: log.recovery_point for tp, log in self._live().items()})]

    def close_cleanly(self, high_watermarks: Mapping[TopicPartition, int]) -> list[Durable]:
        """Flush every log, side by side, close it, write all checkpoints, and leave the marker of that last."""
        with self.together():
            for log in self._live().values():
                self._options.together.add(log)
        durable = self.write_recovery_points()
        durable += self.write_high_watermarks(high_watermarks)
        starts = {tp: log.moved_start for tp, log in self._live().items()}
        durable.append(self._starts.replace({tp: at for tp, at in starts.items() if at is not None}))
        self.close()
        with Folder(self.path) as folder:
            os.close(folder.open(checkpoint.CLEAN_MARKER, os.O_WRONLY | os.O_CREAT))
            folder.sync()
        self._on_durable(checkpoint.CLEAN_MARKER, 0)
        return [*durable, (checkpoint.CLEAN_MARKER, 0)]

    def close(self) -> None:
        """Close every log's files as a crash would: flush and write nothing."""
        for log in self._live().values():
            log.close()

    def open_logs(
        self,
        known: Mapping[TopicPartition, Known],
        *,
        high_watermarks: Mapping[TopicPartition, int],
        points: Mapping[TopicPartition, int],
        starts: Mapping[TopicPartition, int],
        clean_to: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, Recovery]:
        """Open the log of every partition directory; `known` has an entry for each, checkpoints may have more."""
        recoveries = {}
        self._high_watermarks = dict(high_watermarks)
        for file, found in ((self._points, points), (self._starts, starts), (self._clean, clean_to)):
            file.begin(found)
        for tp, of_log in known.items():
            self.logs[tp], recoveries[tp] = open_log(tp, self.path / str(tp), of_log, self._options)
            # The next start must not trust a log up to its old recovery point if recovery cut it below, nor take
            # for clean what is appended where clean records were.
            self._points.lower(tp, self.logs[tp].recovery_point)
            self._lower_clean(tp, self.logs[tp].end_offset)
        return recoveries

    def _live(self) -> dict[TopicPartition, FileLog]:
        return {tp: log for tp, log in self.logs.items() if not log.deleted}

    def _forget(self, tp: TopicPartition) -> None:
        """Take a log that is gone out of the checkpoints that are written log by log, by the end of the step."""
        for file in (self._points, self._starts, self._clean):
            file.forget(tp)

    def _before_cut(self, tp: TopicPartition, offset: int) -> None:
        """Lower what the checkpoints say of a log that is about to end at an offset, durably."""
        self._points.lower(tp, offset)
        self._lower_clean(tp, offset)
        self._starts.lower(tp, offset)

    def _keep_start(self, tp: TopicPartition, offset: int) -> None:
        """Write down where a log starts, durably: else the next start would find what lies below again."""
        self._starts.keep(tp, offset)

    def _keep_clean(self, tp: TopicPartition, offset: int) -> None:
        """Write down how far a log is compacted, durably: the next start compacts what lies behind."""
        if not offset:
            self._clean.forget(tp, at_once=True)
        elif self._clean.of(tp) != offset:
            self._clean.keep(tp, offset)

    def _lower_clean(self, tp: TopicPartition, offset: int) -> None:
        if self._clean.of(tp) > offset:
            self._keep_clean(tp, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedData:
    """
    A data directory as found and opened.

    Attributes:
        high_watermarks: as checkpointed.
        clean: the clean-shutdown marker was found.
        notes: one text for every checkpoint of the directory that could not be read.
    """

    data: DataDir
    logs: Mapping[TopicPartition, tuple[FileLog, Recovery]]
    high_watermarks: Mapping[TopicPartition, int]
    clean: bool
    notes: tuple[str, ...]


def _ignore_durable(_path: str, _length: int) -> None:
    """Do nothing."""


def open_data_dir(
    path: Path,
    *,
    segment_bytes: int = SEGMENT_BYTES_DEFAULT,
    segment_ms: int = 0,
    on_durable: Callable[[str, int], None] = _ignore_durable,
    files_open_max: int = _FILES_OPEN_MAX,
    producers_max: int = _PRODUCERS_MAX,
    remove: Remove = remove_directories,
    later: Later = at_once,
) -> OpenedData:
    """
    Open every log below `path` (created when missing); recover the logs that were not shut down cleanly.

    Args:
        files_open_max: how many files of the logs may be open at once.
        producers_max: of how many idempotent producers each log knows the last batches.
        remove: removes the directories of deleted logs, now or later.
        later: unlinks the files below a log's start, now or later.

    Raises:
        RefusedError: what has the name of one of the broker's files is none of them; nothing was changed.
        OSError: from the disk.
    """
    path = make_data_directory(path)
    found = survey(path)  # before anything is changed
    clean = _take_marker(path)
    remove_directories(found.doomed)
    for leftover in found.leftovers:
        unlink(path / leftover)
    notes: list[str] = []
    high_watermarks = _read(path / checkpoint.HIGH_WATERMARKS_FILE, notes)
    points = _read(path / checkpoint.RECOVERY_POINTS_FILE, notes)
    starts = _read(path / checkpoint.LOG_STARTS_FILE, notes)
    clean_to = _read(path / checkpoint.CLEANED_FILE, notes)
    words = tuple(note.partition(":")[0] for note in notes)
    data = DataDir(
        path,
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        on_durable=on_durable,
        files_open_max=files_open_max,
        producers_max=producers_max,
        remove=remove,
        later=later,
    )
    recoveries = data.open_logs(
        {
            tp: Known(
                clean=clean,
                recovery_point=points.get(tp),
                log_start=max(0, starts.get(tp, 0)),
                high_watermark=max(0, high_watermarks.get(tp, 0)),
                clean_to=max(0, clean_to.get(tp, 0)),
                notes=words,
            )
            for tp in found.partitions
        },
        high_watermarks=high_watermarks,
        points=points,
        starts=starts,
        clean_to=clean_to,
    )
    return OpenedData(
        data=data,
        logs={tp: (data.logs[tp], recovery) for tp, recovery in recoveries.items()},
        high_watermarks=high_watermarks,
        clean=clean,
        notes=tuple(notes),
    )


def _take_marker(path: Path) -> bool:
    with Folder(path) as folder:
        if not folder.has(checkpoint.CLEAN_MARKER):
            return False
        folder.unlink(checkpoint.CLEAN_MARKER)
        folder.sync()
        return True


def _read(path: Path, notes: list[str]) -> dict[TopicPartition, int]:
    try:
        return checkpoint.read_offsets(path)
    except checkpoint.CheckpointError as error:
        notes.append(f"{_UNREADABLE.format(path.name)}: {error}")
        return {}
