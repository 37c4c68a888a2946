"""
Which files of a folder have bytes that are in memory alone, and that a power loss would take now.

The kernel tells it by cachestat(2), since Linux 6.5: how many pages of a file are still to be written to its disk.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from harness.beneath import Folder, RefusedError
from harness.hosts.trees import files

# The call's number, which all architectures of Linux share but for Alpha.
CACHESTAT: Final = 451
_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    """Which bytes of a file are asked about: all of them, if both are 0."""

    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    """What the kernel answers, in pages."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "being_written", "evicted", "recently_evicted")
    )


def unwritten(data: Folder) -> tuple[str, ...]:
    """Return the files below that have pages to be written, as `those` does; () if the kernel does not tell it."""
    return () if why_untold() else those(data, lambda path: _has_dirty_page(data, path))


def those(data: Folder, late: Callable[[str], bool]) -> tuple[str, ...]:
    """
    Return the files below that are late, each with its size and the moment of its last write.

    So two answers have a text in common only if that file was not written to in between.
    """
    return tuple(_late(data, late))


def _late(data: Folder, late: Callable[[str], bool]) -> Iterator[str]:
    for path, _ in files(data):
        try:
            seen = data.lstat(path)
            if stat.S_ISREG(seen.st_mode) and late(path):
                yield f"{path} of {seen.st_size} bytes, written at {seen.st_mtime_ns} ns,"
        except (FileNotFoundError, RefusedError):  # the node has replaced it meanwhile
            continue


@cache
def why_untold() -> str:
    """Return why this machine's kernel does not tell which pages are to be written, "" if it does."""
    handle = os.open("/proc/self/exe", os.O_RDONLY | os.O_CLOEXEC)
    try:
        asked = _libc.syscall(CACHESTAT, handle, ctypes.byref(_Range()), ctypes.byref(_Pages()), 0)
    finally:
        os.close(handle)
    number = ctypes.get_errno()
    return f"no cachestat: {os.strerror(number)}; expected Linux 6.5 or later" if asked != 0 else ""


def _has_dirty_page(data: Folder, path: str) -> bool:
    pages = _Pages()
    handle = data.open(path)
    try:
        if _libc.syscall(CACHESTAT, handle, ctypes.byref(_Range()), ctypes.byref(pages), 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cachestat: {os.strerror(number)}", path)
    finally:
        os.close(handle)
    return bool(pages.dirty or pages.being_written)
