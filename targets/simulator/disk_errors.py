"""
The error that a simulated disk reports next: a write for lack of space, or an fsync that lost its pages.

A write that fails may have written whole batches and a part of one. An fsync that fails leaves of the file what
was durable before, and perhaps some of the rest; the lost pages count as clean, so no later fsync reports them.
Source:  Rebello et al.: "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
"""

from __future__ import annotations

import errno
from random import Random
from typing import Final

from harness.cluster.disk_error import DiskError

# How many writes, or flushes, may still succeed in a random world.
LEFT_MAX: Final = 2
_ERRORS: Final = {
    DiskError.FULL: (errno.ENOSPC, "No space left on device"),
    DiskError.FLUSH: (errno.EIO, "Input/output error"),
}


class DiskErrors:
    """
    What a disk is to report, and what it did.

    Attributes:
        armed: the kind of error that is due, None for none.
        chance: the random source of what a failed call leaves; None if it leaves nothing.
        met: what failed since the disk was broken, "" for nothing.
        failed: how many calls have failed so far.
    """

    def __init__(self) -> None:
        self.armed: DiskError | None = None
        self.chance: Random | None = None
        self.met = ""
        self.failed = 0
        self._left = 0

    def arm(self, error: DiskError, chance: Random | None) -> None:
        """Break the disk, so that one of the next calls of that kind fails."""
        self.armed, self.chance, self.met = error, chance, ""
        self._left = 0 if chance is None else chance.randint(0, LEFT_MAX)

    def mend(self) -> str:
        """Mend the disk; return what failed, "" for nothing."""
        self.armed = None
        return self.met

    def due(self, error: DiskError) -> bool:
        """Return True if this call is to fail; one that is not counts as one that succeeded."""
        if self.armed is not error:
            return False
        self._left -= 1
        return self._left < 0

    def error(self, what: str) -> OSError:
        """Return the error that a call raises, after it was `due`."""
        assert self.armed is not None, f"{what} fails on a disk that is whole"
        number, text = _ERRORS[self.armed]
        self.failed += 1
        self.met = f"{errno.errorcode[number]} at {what}"
        return OSError(number, text)

    def check(self, error: DiskError, what: str) -> None:
        """Raise the error if it is due at a call that leaves nothing when it fails."""
        if self.armed is not None and self.due(error):
            raise self.error(what)
