"""
What a disk under harness/hosts/faultfs.py does wrong, and what it has refused: rules without a mount.

A failed fsync loses what it was to write: how many bytes of each file are durable is counted here, and `mend` cuts
the files whose fsync failed to that length. Until then the bytes can be read, as from pages that the kernel has
marked clean; no later fsync reports them.
Source:  Rebello et al.: "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.cluster.disk_error import SLOW_MS

# Kinds of calls: READ of a file's bytes; WRITE of them; MAKE a name; CHANGE a length, a name or a mode; FSYNC; ASK
# about the disk itself.
READ: Final = "read"
WRITE: Final = "write"
MAKE: Final = "make"
CHANGE: Final = "change"
FSYNC: Final = "fsync"
ASK: Final = "ask"

SLOW: Final = "slow"
FULL: Final = "full"
# By the name of the error (harness/cluster/disk_error.py): the kinds of calls that fail, and with what.
REFUSED: Final[Mapping[str, tuple[frozenset[str], int]]] = {
    FULL: (frozenset({WRITE, MAKE}), errno.ENOSPC),
    "write": (frozenset({WRITE}), errno.EIO),
    "flush": (frozenset({FSYNC}), errno.EIO),
    "read": (frozenset({READ}), errno.EIO),
    "read-only": (frozenset({WRITE, MAKE, CHANGE}), errno.EROFS),
    SLOW: (frozenset(), 0),
    "": (frozenset(), 0),
}
# What the disk below may report by itself: it is full, dead, or was remounted.
_OF_DISKS: Final = frozenset({errno.ENOSPC, errno.EIO, errno.EROFS})
# Calls of these kinds wait while the disk is slow.
_SLOWED: Final = frozenset({READ, WRITE, FSYNC, ASK})
# How many refused calls are described; all are counted.
MET_MAX: Final = 8


class FaultRules:
    """
    The state of one disk.

    Args:
        length_of: the length of a file below, by its path; raises OSError.
        cut: cuts it to a length; raises OSError.
        wait: waits so many seconds.

    Attributes:
        error: what is wrong now, a key of REFUSED; "" for nothing.
        refused: how many calls have failed since `set`.
        slowed: how many were made to wait since `set`.
        met: the first that failed, as text.
    """

    def __init__(
        self,
        length_of: Callable[[str], int],
        cut: Callable[[str, int], None],
        wait: Callable[[float], None] = time.sleep,  # noqa: TID251  (the time that a slow disk takes)
    ) -> None:
        self.error = ""
        self.refused = self.slowed = 0
        self.met: list[str] = []
        self._length_of = length_of
        self._cut = cut
        self._wait = wait
        self._kinds: frozenset[str] = frozenset()
        self._errno = 0
        self._durable: dict[str, int] = {}
        self._lost: set[str] = set()
        # The next write has room for a half of it.
        self._half = False

    # --- from outside --------------------------------------------------------------------------------------
    def set(self, error: str) -> None:
        """Let the disk do this wrong from now on; raise OSError EINVAL for another word."""
        if error not in REFUSED:
            raise OSError(errno.EINVAL, f"disk error {error!r}: expected one of {', '.join(REFUSED)}")
        self.error = error
        self._kinds, self._errno = REFUSED[error]
        self.refused = self.slowed = 0
        self.met = []
        self._half = error == FULL

    def mend(self) -> None:
        """Let the disk do all it is asked again, without the bytes whose fsync failed."""
        self.error, self._kinds, self._half = "", frozenset(), False
        gone = files = 0
        for path in sorted(self._lost):
            try:
                length = self._length_of(path)
                # A file that was never opened for writing has nothing to lose.
                lost = length - self._durable.get(path, length)
                if lost > 0:
                    self._cut(path, length - lost)
                    gone, files = gone + lost, files + 1
            except FileNotFoundError:
                continue
        if self._lost:
            self.met.append(f"{gone} bytes in {files} files are gone with it")
        self._lost.clear()

    def all_durable(self) -> None:
        """Count every file as durable: the whole disk was flushed from outside, or is a new one."""
        self._durable = {path: self._length(path) for path in self._durable}
        self._lost.clear()

    def seen(self) -> dict[str, Any]:
        """Return what was seen since `set`, as one object of JSON."""
        return {"error": self.error, "refused": self.refused, "slowed": self.slowed, "met": self.met}

    # --- from the filesystem -------------------------------------------------------------------------------
    def check(self, kind: str, path: str, size: int = 0) -> None:
        """Wait if the disk is slow; raise OSError if the call is to fail."""
        if not self.error:
            return
        if self.error == SLOW and kind in _SLOWED:
            self.slowed += 1
            self._wait(SLOW_MS / 1000)
        if kind in self._kinds and not (self._half and kind == WRITE and size > 1):
            if kind == FSYNC:
                self._lost.add(path)
            self._note(self._errno, kind, path, size)
            raise OSError(self._errno, os.strerror(self._errno))

    def fits(self, size: int) -> int:
        """Return how many bytes of a write fit: of the first one on a full disk a half, else all."""
        if not self._half or size < 2:
            return size
        self._half = False
        return size // 2

    def failed(self, error: OSError, kind: str, path: str, size: int = 0) -> None:
        """Note a call that failed below, if it failed for the disk's sake."""
        if error.errno in _OF_DISKS:
            self._note(error.errno or 0, kind, path, size)

    def opened(self, path: str) -> None:
        """Note a file that may be written: until then nothing of it is in doubt."""
        if path not in self._durable:
            self._durable[path] = self._length(path)

    def created(self, path: str) -> None:
        """Note a new file, of which nothing is durable."""
        self._durable[path] = 0

    def flushed(self, path: str) -> None:
        """Note that all of a file is durable, unless an earlier fsync of it failed."""
        if path not in self._lost:
            self._durable[path] = self._length(path)

    def cut(self, path: str, length: int) -> None:
        """Note that a file was cut: what is written behind is new."""
        self._durable[path] = min(self._durable.get(path, length), length)

    def renamed(self, old: str, new: str) -> None:
        """Note that a file, or a folder with all its files, has another name."""
        for path in [path for path in self._durable if path == old or path.startswith(f"{old}/")]:
            self._durable[new + path.removeprefix(old)] = self._durable.pop(path)

    def removed(self, path: str) -> None:
        """Note that a file is gone."""
        self._durable.pop(path, None)
        self._lost.discard(path)

    def _note(self, number: int, kind: str, path: str, size: int) -> None:
        self.refused += 1
        if len(self.met) < MET_MAX:
            of = f" of {size} bytes" if kind in (READ, WRITE) else ""
            self.met.append(f"{errno.errorcode[number]} at {path.lstrip('/') or '.'}, {kind}{of}")

    def _length(self, path: str) -> int:
        try:
            return self._length_of(path)
        except OSError:
            return 0
