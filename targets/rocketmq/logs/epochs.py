"""
A broker's file of epochs: which epoch began at which byte of its commit log.

    2           how many lines follow
    832967443   their CRC-32
    1-0         epoch 1 begins at byte 0
    2-627

Source:  CheckpointFile.java, EpochFileCache.EpochEntrySerializer.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from harness.beneath import Folder
from harness.logs.record import NO_EPOCH

FILE: Final = "epochFileCheckpoint"
_BEFORE: Final = f"{FILE}.bak"
_BYTES_MAX: Final = 1024 * 1024
_CRC_MASK: Final = 0x7FFFFFFF
_NOT_CHECKED: Final = 0
_LONG_MAX: Final = 2**63 - 1

# (epoch, the offset of its first byte), in order.
Starts = Sequence[tuple[int, int]]


def starts_in(folder: Folder) -> Starts:
    """
    Return what the file says, else what the one before it says: a broker takes that if the file is damaged.

    () if neither can be read: then no record has an epoch.
    """
    return next(filter(None, (_read(folder, name) for name in (FILE, _BEFORE))), ())


def _read(folder: Folder, name: str) -> Starts:
    """Return what a file says; () if it is not there, or is not as its count and its checksum say."""
    try:
        with os.fdopen(folder.open(name), "rb") as file:
            count, crc, *lines = file.read(_BYTES_MAX).decode("ascii").splitlines()
        content = "".join(f"{line}\n" for line in lines).encode()
        if int(count) != len(lines) or int(crc) not in (_NOT_CHECKED, zlib.crc32(content) & _CRC_MASK):
            return ()
        found = [line.partition("-") for line in lines]
        return [(_number(epoch), _number(start)) for epoch, _, start in found]
    except (OSError, ValueError):
        return ()


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _LONG_MAX:
        raise ValueError(text)
    return number


def epoch_at(starts: Starts, position: int) -> int:
    """Return the epoch of the record that begins at a byte."""
    index = bisect_right(starts, position, key=itemgetter(1))
    return starts[index - 1][0] if index else NO_EPOCH
