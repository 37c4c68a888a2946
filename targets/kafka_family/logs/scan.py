"""
Read one replica's log from its directory: batches, records, checkpoints, and what could not be read.

The scan reads the files of any broker in Kafka's format, and never writes to them. Damage becomes a problem text,
not an exception: a scan after a power loss must report what it found.

    DATA_DIRECTORY/replication-offset-checkpoint     the high watermark of every partition
    DATA_DIRECTORY/TOPIC-PARTITION/NNNN.log          segments, named by their first offset (files.py)
    DATA_DIRECTORY/TOPIC-PARTITION/leader-epoch-checkpoint

Only regular files are opened, and no link below the data directory is followed (harness/beneath.py).

A broker may write to the log meanwhile: the reading is unsettled if files vanished or shrank, or the log ends
inside a write.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.beneath import Folder
from harness.logs.checkpoint import CheckpointError
from harness.logs.replica import BatchSeen, ReplicaLog
from harness.logs.segments import Findings
from targets.kafka_family.logs import checkpoint
from targets.kafka_family.logs.data import DataFolder, parse
from targets.kafka_family.logs.files import NO_FILES, is_locked, list_log
from targets.kafka_family.logs.reading import read_segments


class Scan:
    """One reading of one partition's directory; see harness/logs/stream.py for every call."""

    def __init__(self, data: DataFolder, name: str) -> None:
        """
        Read the checkpoints and list the log.

        Args:
            name: The directory's, in the data directory.

        Raises:
            UsageError: The name is not TOPIC-PARTITION.
        """
        self._data = data
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

    def close(self) -> None:
        """Close the partition's directory."""
        if self._folder is not None:
            self._folder.close()

    def batches(self, value_characters_max: int | None) -> Iterator[BatchSeen]:
        """Yield the batches in file order."""
        if self._folder is None:
            self.found.unread.append((0, None))
            return
        for batch in read_segments(self.found, self._folder, self._before, value_characters_max):
            self._note_bounds()
            yield batch
        self._note_bounds()

    def log(self) -> ReplicaLog:
        """Return the log without its batches."""
        return ReplicaLog(
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

    def unsettled(self) -> str:
        """Return why what was read may mix two states of the log."""
        return "" if self._folder is None else self._unsettled(self._folder)

    def _note_bounds(self) -> None:
        self.start = max(self.start, self.found.start)
        self.cleaned_to = max(self.cleaned_to, self.found.cleaned_to)

    def _unsettled(self, folder: Folder) -> str:
        try:
            after = list_log(folder)
        except OSError:
            after = self._before
        return self.found.unsettled(self._before.seen, after.seen, moved=self._has_moved(folder))

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
