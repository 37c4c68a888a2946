"""
What a power loss took from a folder, byte by byte; and which pages it happened to leave.

A page that reached the disk without those before it leaves a hole of zeros there, and a batch that lies across the
last page that did is torn. Chance decides page by page, from a seed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from harness.beneath import Folder, RefusedError

PAGE_BYTES: Final = 4096
# How often a page that was not flushed has reached the disk all the same.
KEPT_SHARE: Final = 0.5
# Path relative to the folder -> bytes.
Contents: TypeAlias = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """
    What became of the bytes that were written.

    Attributes:
        written: how many there were.
        gone: how many of them are not where they were, or are other bytes now.
        zeros: of those, how many are zeros.
        back: how many bytes are there again that had been cut.
        names: how many names came or went.
    """

    written: int = 0
    gone: int = 0
    zeros: int = 0
    back: int = 0
    names: int = 0

    def __str__(self) -> str:
        """Return it as a probe says it."""
        return (
            f"of {self.written} bytes written {self.written - self.gone} were durable and {self.gone} are gone, "
            f"{self.zeros} of them zeros now; {self.back} cut bytes are back, {self.names} names undone"
        )


def contents(folder: Folder) -> dict[str, bytes]:
    """Return the bytes of every regular file below; a file that vanishes meanwhile is left out."""
    found: dict[str, bytes] = {}
    _read(folder, "", found)
    return found


def _read(folder: Folder, prefix: str, found: dict[str, bytes]) -> None:
    for name in sorted(entry.name for entry in folder.entries()):
        try:
            mode = folder.lstat(name).st_mode
            if stat.S_ISDIR(mode):
                with folder.folder(name) as below:
                    _read(below, f"{prefix}{name}/", found)
            elif stat.S_ISREG(mode):
                with os.fdopen(folder.open(name), "rb") as file:
                    found[f"{prefix}{name}"] = file.read()
        except (FileNotFoundError, RefusedError):
            continue


def lost_between(before: Contents, after: Contents) -> Lost:
    """Compare a folder's files before a power loss and after it."""
    gone = zeros = back = 0
    for path, old in before.items():
        new = after.get(path, b"")
        gone += max(0, len(old) - len(new))
        back += max(0, len(new) - len(old))
        if old[: len(new)] == new[: len(old)]:
            continue
        for at in range(0, min(len(old), len(new)), PAGE_BYTES):
            was, now = old[at : at + PAGE_BYTES], new[at : at + PAGE_BYTES]
            if was != now:
                differing = [b for a, b in zip(was, now, strict=False) if a != b]
                gone += len(differing)
                zeros += differing.count(0)
    return Lost(
        written=sum(map(len, before.values())),
        gone=gone,
        zeros=zeros,
        back=back + sum(len(after[path]) for path in after.keys() - before.keys()),
        names=len(before.keys() ^ after.keys()),
    )


def chosen_pages(size: int, chance: Random) -> list[int]:
    """Return the positions of the pages of a file that reach the disk by themselves."""
    return [at for at in range(0, size, PAGE_BYTES) if chance.random() < KEPT_SHARE]


def keep_pages(folder: Folder, before: Contents, chance: Random) -> None:
    """
    Let a folder that has only what was flushed have what reached the disk besides, as a journal that was written.

    Every name and cut that was made is there, and of the bytes behind the flushed ones the pages that chance
    chooses.
    """
    for path in sorted(contents(folder).keys() - before.keys()):
        folder.unlink(path)
    for path, old in sorted(before.items()):
        above, _, name = path.rpartition("/")
        with folder.make(above) if above else folder.below(()) as parent:
            handle = parent.open(name, os.O_RDWR | os.O_CREAT)
        try:
            end = min(os.fstat(handle).st_size, len(old))
            os.ftruncate(handle, end)
            for at in chosen_pages(len(old), chance):
                first, last = max(at, end), min(at + PAGE_BYTES, len(old))
                if first < last:
                    os.pwrite(handle, old[first:last], first)
        finally:
            os.close(handle)
