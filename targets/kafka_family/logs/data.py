"""
Find the partitions of a data directory, and read the checkpoints that all of them share once.

A name that is a partition's and is no folder (a link, a FIFO) is a partition that cannot be read: it is returned,
and its scan reports why.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

from harness import limits
from harness.beneath import Folder
from harness.logs.checkpoint import Remembered, remembered
from harness.logs.names import shown
from harness.model import UsageError
from targets.kafka_family.logs import checkpoint
from targets.kafka_family.logs.files import SEGMENT_NAME

# `-delete`, `-future` and `-stray` directories do not end in a number, so they do not match. Neither does a number
# that Kafka does not write, such as 007, which would name one partition twice.
_PARTITION_NAME: Final = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)", re.DOTALL)
_PARTITION_FILES: Final = (checkpoint.LEADER_EPOCHS, checkpoint.TOPIC_ID)
_DATA_FILES: Final = (checkpoint.HIGH_WATERMARKS, "meta.properties")


class DataFolder:
    """An open data directory; a checkpoint is read again only when its file has changed."""

    def __init__(self, folder: Folder, read: Remembered | None = None) -> None:
        """
        Use the folder, which the caller closes.

        Args:
            read: The checkpoints of this folder that were read before, to which it adds.
        """
        self.folder = folder
        self._read: Remembered = {} if read is None else read

    def partitions(self) -> list[str] | None:
        """
        Return the names of the partition directories, sorted; None if this is a partition's own directory.

        Raises:
            OSError: The directory cannot be listed.
            UsageError: It has more than FOLDER_NAMES_MAX partitions.
        """
        return None if is_partition(self.folder) else sorted(_names(self.folder))

    def offset(self, name: str, topic: str, partition: int) -> int | None:
        """
        Return the offset that a checkpoint has for a partition; None if it has none.

        Raises:
            CheckpointError: The file does not have Kafka's format.
            OSError: The file cannot be read.
        """
        read = partial(checkpoint.read_offsets, self.folder, name)
        return remembered(self.folder, name, read, self._read).get((topic, partition))


def parse(name: str, directory: Path) -> tuple[str, int]:
    """
    Return the (topic, partition) of a directory's name.

    Raises:
        UsageError: The name is not TOPIC-PARTITION.
    """
    match = _PARTITION_NAME.fullmatch(name)
    if match is None:
        text = "the directory's name is not TOPIC-PARTITION, as in `orders-0`"
        raise UsageError(f"{shown(str(directory))}: {text}")
    return match["topic"], int(match["partition"])


def _names(folder: Folder) -> list[str]:
    """Return the names of the partitions in a data directory."""
    data = any(_exists(folder, name) for name in _DATA_FILES)
    found: list[str] = []
    strange: list[str] = []
    for entry in folder.entries():
        if _PARTITION_NAME.fullmatch(entry.name) is None:
            continue
        if len(found) + len(strange) >= limits.FOLDER_NAMES_MAX:
            text = f"more than {limits.FOLDER_NAMES_MAX} partitions"
            raise UsageError(
                f"{shown(str(folder.path))}: {text}; name some of its partitions' directories instead"
            )
        if not entry.is_dir(follow_symlinks=False):
            if not entry.is_file(follow_symlinks=False):
                strange.append(entry.name)
        # In a data directory, an empty directory may be what a power loss left of a replica.
        elif data or _may_be_partition(folder, entry.name):
            found.append(entry.name)
    return found + strange if data or found else []


def _exists(folder: Folder, name: str) -> bool:
    try:
        folder.lstat(name)
    except FileNotFoundError:
        return False
    return True


def _may_be_partition(data: Folder, name: str) -> bool:
    """Return True if the directory has a partition's files, or cannot be listed."""
    try:
        with data.folder(name) as folder:
            return is_partition(folder)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_partition(folder: Folder) -> bool:
    """
    Return True if a folder has a partition's files.

    Raises:
        OSError: It cannot be listed.
    """
    return any(entry.name in _PARTITION_FILES or SEGMENT_NAME.fullmatch(entry.name) for entry in folder.entries())
