"""
Deletion of partitions' directories: first their names, durably, then their files.

A command deletes thousands of replicas, and the broker must go on meanwhile. All that one step deletes shares a
flush of the names; the files may be removed later, as the next start would do it.
Source:  Kafka, LogManager.asyncDelete and deleteLogs; UnifiedLog.logDeleteDirName: a topic's name is cut where the
         directory's would be too long.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.beneath import remove_directory
from targets.broker.log.doubt import noted
from targets.broker.log.together import Together

# Kafka's name for a partition's directory during deletion: `topic-0.<32 hex digits>-delete`.
DELETED_SUFFIX: Final = "-delete"
# The longest name of a file or directory that Linux allows.
NAME_BYTES_MAX: Final = 255

Remove = Callable[[Sequence[Path]], None]


def remove_directories(doomed: Sequence[Path]) -> None:
    """Remove directories with their files, now."""
    for directory in doomed:
        with noted(f"the removal of {directory.name}"):
            remove_directory(directory)


class Deletions:
    """
    The deleted directories of one data directory, until somebody removes them.

    Args:
        together: while it is open, names become durable at its end.
        remove: called with directories whose new names are durable, to remove them now or later.

    Raises:
        OSError: from the disk.
    """

    def __init__(self, together: Together, remove: Remove = remove_directories) -> None:
        self._together = together
        self._remove = remove
        self._doomed: list[Path] = []

    def delete(self, directory: Path, tp: TopicPartition) -> None:
        """Rename a partition's directory: its name is free at once."""
        suffix = f"-{tp.partition}.{uuid.uuid4().hex}{DELETED_SUFFIX}"
        doomed = directory.with_name(tp.topic[: NAME_BYTES_MAX - len(suffix)] + suffix)
        directory.rename(doomed)
        self._doomed.append(doomed)
        self._together.add(self)

    def settle(self) -> None:
        """Make the new names durable."""
        with noted("the deletion of replicas"):
            for parent in dict.fromkeys(path.parent for path in self._doomed):
                checkpoint.sync_directory(parent)

    def report(self) -> None:
        """Have the directories removed."""
        doomed, self._doomed = self._doomed, []
        self._remove(doomed)
