"""
Find the files of a partition's directory that are its log, and whether a broker uses them. Reads names only.

    NNNN.log            a segment, named by its first offset
    NNNN.log.cleaned    an unfinished cleaning: the broker removes it at its next start
    NNNN.log.swap       a finished cleaning: it replaces the segments that it was made of; some may be gone already
    NNNN.log.deleted    no longer part of the log

A broker that dies between renaming its `.swap` files and its segments leaves records in a `.swap` alone. At its
next start it makes a segment of the `.swap`, in place of all segments that begin in its range. The reader of a log
(reading.py) does the same.

Source:  Apache Kafka, storage/.../LogLoader.java, LocalLog.replaceSegments; KAFKA-6264 (a `.swap` at or past the
         first `.cleaned` belongs to a split that was not finished).
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness.beneath import Folder
from harness.logs.files import seen_in

LOCK: Final = ".lock"
SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")
_ANY_NAME: Final = re.compile(SEGMENT_NAME.pattern + r"(|\.swap|\.cleaned)")
# struct flock of 64-bit Linux: type, whence, start, length, pid.
_FLOCK: Final = "@hhqqi4x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """
    The files of a log at one moment.

    Attributes:
        segments: Names by first offset, rising.
        swaps: Names by first offset, rising; only those of finished cleanings.
        cleaned_from: The first offset of an unfinished cleaning; None if there is none.
        seen: (inode, bytes) of each segment and `.swap` file, by file name.
    """

    segments: Mapping[int, str]
    swaps: Mapping[int, str]
    cleaned_from: int | None
    seen: Mapping[str, tuple[int, int]]


NO_FILES: Final = Listing(segments={}, swaps={}, cleaned_from=None, seen={})


def list_log(folder: Folder) -> Listing:
    """
    List a partition's directory, without files that vanish meanwhile.

    Raises:
        OSError: The directory cannot be listed, or has more than FOLDER_NAMES_MAX such files.
    """
    found: dict[str, dict[int, str]] = {"": {}, ".swap": {}, ".cleaned": {}}
    seen = seen_in(folder, _ANY_NAME)
    for name in list(seen):
        offset, _, suffix = name.partition(".log")
        found[suffix][int(offset)] = name
        if suffix == ".cleaned":
            del seen[name]
    cleaned_from = min(found[".cleaned"], default=None)
    swaps = {first: name for first, name in found[".swap"].items() if cleaned_from is None or first < cleaned_from}
    return Listing(
        segments=dict(sorted(found[""].items())),
        swaps=dict(sorted(swaps.items())),
        cleaned_from=cleaned_from,
        seen=seen,
    )


def is_locked(data: Folder) -> bool:
    """
    Return True if a running broker holds the data directory: Apache Kafka's brokers lock its `.lock` file.

    Queries the lock without taking it. A broker on another machine is not seen.
    """
    try:
        handle = data.open(LOCK)
    except OSError:
        return False
    try:
        asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        (kind, *_) = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    except OSError:
        return False
    finally:
        os.close(handle)
    return bool(kind != fcntl.F_UNLCK)
