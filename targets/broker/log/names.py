"""
The names in a data directory, as Kafka has them: of partitions, and of their files.

    TOPIC-N                     a partition's directory
    TOPIC-N.HHHH...-delete      that of a deleted one, with 32 hexadecimal digits

A segment is named by its base offset in 20 digits, and a change of it adds to that:

    NNNN.log            a segment
    NNNN.log.cleaned    an unfinished cleaning
    NNNN.log.swap       a finished cleaning, in place of the segments that begin in its range
    NNNN.log.deleted    no part of the log any more

Source:  Kafka, LogFileUtils and UnifiedLog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from targets.broker.core.messages import TopicPartition
from targets.broker.log.beneath import Folder

SEGMENT_SUFFIX: Final = ".log"
SWAP: Final = f"{SEGMENT_SUFFIX}.swap"
CLEANED: Final = f"{SEGMENT_SUFFIX}.cleaned"
# For a file of any kind during its deletion.
DELETED_SUFFIX: Final = ".deleted"
# The offsets of a segment's records need 64 bits, and may be so much larger than its own.
BASE_OFFSET_MAX: Final = 2**63 - 2**32

# Kafka's own rule for topic names; it also keeps a topic name from being a path.
TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
PARTITION_MAX: Final = 2**31 - 1

_DIGITS: Final = 20
_PARTITION: Final = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})")
_DOOMED: Final = re.compile(r"[a-zA-Z0-9._-]+-[0-9]+\.[0-9a-f]{32}-delete")
_NAME: Final = re.compile(rf"(?P<base>[0-9]{{{_DIGITS}}})(?P<suffix>\.log(\.swap|\.cleaned)?)")


def partition_of(name: str) -> TopicPartition | None:
    """Return the partition that a directory of that name holds, None if Kafka allows no such name."""
    match = _PARTITION.fullmatch(name)
    if match is None or not TOPIC.fullmatch(match["topic"]):
        return None
    tp = TopicPartition(match["topic"], int(match["partition"]))
    return tp if str(tp) == name and tp.partition <= PARTITION_MAX else None


def looks_like_partition(name: str) -> bool:
    """Return True if a name ends like that of a partition's directory."""
    return name.rpartition("-")[2].isdecimal()


def is_doomed(name: str) -> bool:
    """Return True if a directory of that name is of a partition that was deleted."""
    return _DOOMED.fullmatch(name) is not None


def segment_name(base_offset: int, suffix: str = SEGMENT_SUFFIX) -> str:
    """Return Kafka's name of a segment file, or of one of its cleaning."""
    return f"{base_offset:0{_DIGITS}d}{suffix}"


def segment_offsets(directory: Path) -> list[int]:
    """Return the base offsets of the segments in a directory, rising."""
    with Folder(directory) as folder:
        return offsets_in(folder.names(), SEGMENT_SUFFIX)


def offsets_in(names: Iterable[str], suffix: str) -> list[int]:
    """Return the base offsets of the files with that suffix, rising."""
    found = map(_NAME.fullmatch, names)
    return sorted(int(match["base"]) for match in found if match and match["suffix"] == suffix)


def offset_of(name: str) -> int | None:
    """Return the base offset that the name of a segment or of a cleaning's file has, None of another name."""
    match = _NAME.fullmatch(name)
    return int(match["base"]) if match else None
