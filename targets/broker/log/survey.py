"""
A look at a whole data directory before a start changes anything in it: what is there, and that it is the broker's.

What has the name of one of the broker's files and is no regular file, is longer than any of them, or has a number
that none of them has, ends the start; nothing was changed. All other names are left alone: a disk has a
`lost+found`, and Apache Kafka keeps more beside a segment than this broker does.
Source:  Kafka, LogManager.loadLogs and LogLoader.removeTempFilesAndCollectSwapFiles.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from targets.broker.core.messages import TopicPartition
from targets.broker.log import checkpoint
from targets.broker.log.beneath import Folder, RefusedError, require_directory, require_file, require_size
from targets.broker.log.names import (
    BASE_OFFSET_MAX,
    DELETED_SUFFIX,
    is_doomed,
    looks_like_partition,
    offset_of,
    partition_of,
)

log = logging.getLogger("fencepost.broker")

_CHECKPOINTS: Final = (
    checkpoint.HIGH_WATERMARKS_FILE,
    checkpoint.RECOVERY_POINTS_FILE,
    checkpoint.LOG_STARTS_FILE,
    checkpoint.CLEANED_FILE,
)
_SIDE_FILES: Final = (checkpoint.EPOCHS_FILE, checkpoint.TOPIC_ID_FILE)
_LEFTOVERS: Final = frozenset(f"{name}{checkpoint.TEMPORARY_SUFFIX}" for name in (*_CHECKPOINTS, *_SIDE_FILES))
# What is read whole, and how long it may be.
_BYTES_MAX: Final[Mapping[str, int]] = {
    **dict.fromkeys((*_CHECKPOINTS, checkpoint.EPOCHS_FILE), checkpoint.BYTES_MAX),
    checkpoint.TOPIC_ID_FILE: checkpoint.TOPIC_ID_BYTES_MAX,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What is the broker's in a data directory.

    Attributes:
        doomed: the directories of deleted partitions.
        leftovers: the names of files of a write that was not finished.
    """

    partitions: tuple[TopicPartition, ...]
    doomed: tuple[Path, ...]
    leftovers: tuple[str, ...]


def is_leftover(name: str) -> bool:
    """Return True if a file of a partition is of a write or of a deletion that was not finished."""
    return name in _LEFTOVERS or name.endswith(DELETED_SUFFIX)


def survey(path: Path) -> Found:
    """
    Look at a data directory and at each partition's.

    Raises:
        RefusedError: something there is not the broker's, though it has the name; nothing was changed.
        OSError: from the disk.
    """
    partitions: list[TopicPartition] = []
    doomed: list[Path] = []
    leftovers: list[str] = []
    with Folder(path) as folder:
        for entry in sorted(folder.entries(), key=lambda entry: entry.name):
            tp = partition_of(entry.name)
            if tp is not None or is_doomed(entry.name):
                _require_directory(path, entry)
            if tp is not None:
                partitions.append(tp)
            elif is_doomed(entry.name):
                doomed.append(path / entry.name)
            elif entry.name in _BYTES_MAX or entry.name in _LEFTOVERS or entry.name == checkpoint.CLEAN_MARKER:
                _require_file(path, entry)
                leftovers += [entry.name] * (entry.name in _LEFTOVERS)
            elif looks_like_partition(entry.name):
                log.warning("%r: no name of a partition of Kafka's; left alone", str(path / entry.name))
    for tp in partitions:
        _survey_partition(path / str(tp))
    return Found(partitions=tuple(sorted(partitions)), doomed=tuple(doomed), leftovers=tuple(leftovers))


def _survey_partition(directory: Path) -> None:
    with Folder(directory) as folder:
        for entry in sorted(folder.entries(), key=lambda entry: entry.name):
            base = offset_of(entry.name)
            if base is not None or entry.name in _BYTES_MAX or is_leftover(entry.name):
                _require_file(directory, entry)
            if base is not None and base > BASE_OFFSET_MAX:
                raise RefusedError(directory / entry.name, f"expected an offset of at most {BASE_OFFSET_MAX}")


def _require_directory(folder: Path, entry: os.DirEntry[str]) -> None:
    if not entry.is_dir(follow_symlinks=False):
        require_directory(folder / entry.name, entry.stat(follow_symlinks=False).st_mode)


def _require_file(folder: Path, entry: os.DirEntry[str]) -> None:
    path = folder / entry.name
    if not entry.is_file(follow_symlinks=False):
        require_file(path, entry.stat(follow_symlinks=False).st_mode)
    if entry.name in _BYTES_MAX:
        require_size(path, entry.stat(follow_symlinks=False).st_size, _BYTES_MAX[entry.name])
