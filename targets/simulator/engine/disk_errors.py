"""
The error that a simulated disk reports next, or the time that its calls take.

A write that fails for lack of space may have written whole batches and a part of one. An fsync that fails leaves
of the file what was durable before, and perhaps some of the rest; the lost pages count as clean, so no later
fsync reports them. Any other call that fails leaves nothing.
Source:  Rebello et al.: "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
"""

from __future__ import annotations

import errno
from random import Random
from typing import Final

from harness.cluster.disk_error import SLOW_MS, DiskError

# How many writes, or flushes, may still succeed in a random world.
LEFT_MAX: Final = 2
_IO_ERROR: Final = (errno.EIO, "Input/output error")
_ERRORS: Final = {
    DiskError.FULL: (errno.ENOSPC, "No space left on device"),
    DiskError.WRITE: _IO_ERROR,
    DiskError.FLUSH: _IO_ERROR,
    DiskError.READ: _IO_ERROR,
    DiskError.READ_ONLY: (errno.EROFS, "Read-only file system"),
}
# What each kind of call may fail with.
WRITES: Final = frozenset({DiskError.FULL, DiskError.WRITE, DiskError.READ_ONLY})
CHANGES: Final = frozenset({DiskError.READ_ONLY})
FLUSHES: Final = frozenset({DiskError.FLUSH})
READS: Final = frozenset({DiskError.READ})
_NS_PER_MS: Final = 1_000_000


class DiskErrors:
    """
    What a disk is to report, and what it did.

    Attributes:
        armed: the kind of error that is due, None for none.
        chance: the random source of what a failed call leaves; None if it leaves nothing.
        met: what failed since the disk was broken, "" for nothing.
        failed: how many calls have failed so far.
        slowed: how many calls took longer since the disk became slow.
    """

    def __init__(self) -> None:
        self.armed: DiskError | None = None
        self.chance: Random | None = None
        self.met = ""
        self.failed = 0
        self.slowed = 0
        self._left = 0
        self._taken_ns = 0

    def arm(self, error: DiskError, chance: Random | None) -> None:
        """Break the disk, so that one of the next calls of that kind fails."""
        self.armed, self.chance, self.met = error, chance, ""
        self.slowed = 0
        self._left = 0 if chance is None else chance.randint(0, LEFT_MAX)

    def mend(self) -> str:
        """Mend the disk; return what failed or took longer, "" for nothing."""
        self.armed = None
        return f"{self.slowed} calls took longer" if self.slowed else self.met

    def taken_ns(self) -> int:
        """Return how much longer the calls took since this was asked last."""
        taken, self._taken_ns = self._taken_ns, 0
        return taken

    def due(self, errors: frozenset[DiskError]) -> bool:
        """Return True if this call is to fail; one that is not counts as one that succeeded."""
        if self.armed is DiskError.SLOW:
            self.slowed += 1
            self._taken_ns += SLOW_MS * _NS_PER_MS
        if self.armed not in errors:
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

    def check(self, errors: frozenset[DiskError], what: str) -> None:
        """Raise the error if it is due at a call that leaves nothing when it fails."""
        if self.armed is not None and self.due(errors):
            raise self.error(what)
