"""
What lies beside the segments of a log: its epoch file, the id of its topic, and the names in its directory.

They become durable at once, or when all that waits together does (`together`).
Source:  KIP-101, footnote to step 3; KIP-516 (partition.metadata).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.beneath import Folder
from targets.broker.log.doubt import whole
from targets.broker.log.options import LogOptions


class SideFiles:
    """
    The files beside one log's segments, and which changes of them have no fsync yet.

    Args:
        new_names: whether what is in the directory, and its own name, may not be durable.

    Raises:
        OSError: from the disk.
        LogInDoubtError: a change ended half way.
    """

    def __init__(self, tp: TopicPartition, directory: Path, options: LogOptions, *, new_names: bool) -> None:
        self._tp = tp
        self._directory = directory
        self._options = options
        self._epochs_path = directory / checkpoint.EPOCHS_FILE
        self._names_changed = new_names
        self._directory_new = new_names
        self._epochs_dirty = new_names and _is_there(self._epochs_path)
        # What waits to be written, durably; and the files written so, with their lengths.
        self._epochs: tuple[tuple[int, int], ...] | None = None
        self._topic_id: int | None = None
        self._durable: list[tuple[str, int]] = []

    def change_names(self) -> None:
        """Note that a file was created or removed."""
        self._names_changed = True

    def write_epochs(self, entries: Sequence[tuple[int, int]], *, flush: bool) -> None:
        """Replace the epoch file, durably when `flush`."""
        if flush:
            if self._epochs is not None:
                self.settle()  # each write is reported, and so each is made
            self._epochs = tuple(entries)
            self._options.together.add(self)
            return
        self._epochs = None
        with whole(self._tp, "a write of the epochs"):
            checkpoint.write_epochs(self._epochs_path, entries, flush=False)
            self._epochs_dirty = self._names_changed = True

    def write_topic_id(self, topic_id: int) -> None:
        """Write down the id of the topic that the log belongs to, durably; NO_TOPIC_ID: remove what there is."""
        self._topic_id = topic_id
        self._options.together.add(self)

    def flush(self) -> None:
        """Make the epoch file durable, before the records that it describes; names and the report come later."""
        self.settle()
        if self._epochs_dirty:
            self._durable.append((checkpoint.EPOCHS_FILE, checkpoint.sync_file(self._epochs_path)))
            self._epochs_dirty = False
            self.sync_names()

    def sync_names(self) -> None:
        """Make the names of the files durable, and the directory's own."""
        if self._names_changed:
            checkpoint.sync_directory(self._directory)
            self._names_changed = False
        if self._directory_new:
            checkpoint.sync_directory(self._directory.parent)
            self._directory_new = False

    def forget(self) -> None:
        """Let nothing wait: the log is deleted."""
        self._epochs, self._topic_id = None, None

    def settle(self) -> None:
        """Write what waits, durably."""
        epochs, self._epochs = self._epochs, None
        topic_id, self._topic_id = self._topic_id, None
        if topic_id is not None:
            with whole(self._tp, "a write of the topic's id"):
                length = checkpoint.write_topic_id(self._directory / checkpoint.TOPIC_ID_FILE, topic_id)
                if length:
                    self._durable.append((checkpoint.TOPIC_ID_FILE, length))
        if epochs is not None:
            with whole(self._tp, "a write of the epochs"):
                length = checkpoint.write_epochs(self._epochs_path, epochs, flush=True)
                self._epochs_dirty = False
                self._durable.append((checkpoint.EPOCHS_FILE, length))
        if topic_id is not None or epochs is not None:
            self._names_changed = False  # each write has made the names in the directory durable
            self.sync_names()

    def report(self) -> None:
        """Say which files have become durable."""
        durable, self._durable = self._durable, []
        for name, length in durable:
            self._options.on_durable(f"{self._directory.name}/{name}", length)


def _is_there(path: Path) -> bool:
    with Folder(path.parent) as folder:
        return folder.has(path.name)
