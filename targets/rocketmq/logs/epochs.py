"""
A broker's file of epochs: which epoch began at which byte of its commit log.

    2            how many lines follow
    3402617412   their CRC-32
    1-0          epoch 1 begins at byte 0
    2-627

Source:  CheckpointFile.java, EpochFileCache.EpochEntrySerializer.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from harness.beneath import Folder
from harness.logs.record import NO_EPOCH

FILE: Final = "epochFileCheckpoint"
_BYTES_MAX: Final = 1024 * 1024

# (epoch, the offset of its first byte), in order.
Starts = Sequence[tuple[int, int]]


def starts_in(folder: Folder) -> Starts:
    """Return what the file says, () if it is not there or is damaged: then no record has an epoch."""
    try:
        with os.fdopen(folder.open(FILE), "rb") as file:
            text = file.read(_BYTES_MAX)
    except OSError:
        return ()
    found: list[tuple[int, int]] = []
    for line in text.decode("ascii", errors="replace").splitlines()[2:]:
        epoch, dash, start = line.partition("-")
        with suppress(ValueError):
            if dash:
                found.append((int(epoch), int(start)))
    return found


def epoch_at(starts: Starts, position: int) -> int:
    """Return the epoch of the record that begins at a byte."""
    index = bisect_right([start for _, start in starts], position)
    return starts[index - 1][0] if index else NO_EPOCH
