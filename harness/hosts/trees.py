"""
Copy, compare and empty a node's folder, to which the node may write meanwhile, without following any of its links.

A link is copied as a link. A FIFO, a socket or a device has no bytes that could be lost, and is left out.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from harness.beneath import Folder, RefusedError
from harness.model import PreconditionError

# Data directories have two or three levels; a node that nests without end must not exhaust our stack and handles.
DEPTH_MAX: Final = 32
_CHUNK_BYTES: Final = 1024 * 1024


def copy_pass(source: Folder, target: Folder, *, without: frozenset[str] = frozenset()) -> tuple[bool, int]:
    """
    Copy a tree once, into a folder that exists.

    Args:
        without: Names that are not copied, wherever they are.

    Returns:
        Whether a file vanished or became something else meanwhile, and how many files were copied.
    """
    return _copy(source, target, without, DEPTH_MAX)


def copy_file(source: Folder, target: Folder, name: str, *, length: int | None = None) -> None:
    """
    Copy one regular file, or only its first bytes, in place of a file or link that the target has there.

    Raises:
        RefusedError: It is no regular file, or a name of the path is a link.
        OSError: It is missing, or cannot be copied.
    """
    with os.fdopen(source.open(name), "rb") as file:
        was = os.fstat(file.fileno())
        # A file that grows while it is copied ends where it ended at first.
        left = was.st_size if length is None else min(was.st_size, length)
        with os.fdopen(_fresh(target, name), "wb") as copy:
            while left > 0 and (piece := file.read(min(left, _CHUNK_BYTES))):
                copy.write(piece)
                left -= len(piece)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(was.st_mode))
            os.utime(copy.fileno(), ns=(was.st_atime_ns, was.st_mtime_ns))


def exchange(folder: Folder, path: str, position: int, was: bytes, now: bytes) -> bytes:
    """
    Write over bytes of one regular file in place, if they are what they are expected to be; return what they were.

    A process that has the file open goes on, and reads the new bytes next time.

    Raises:
        RefusedError: It is no regular file, or a name of the path is a link or leads out.
        OSError: It is missing, or cannot be written to.
    """
    assert len(was) == len(now), f"{len(now)} bytes in place of {len(was)}; expected as many"
    handle = folder.open(path, os.O_RDWR)
    try:
        found = os.pread(handle, len(was), position)
        if found == was:
            os.pwrite(handle, now, position)
    finally:
        os.close(handle)
    return found


def empty(folder: Folder) -> None:
    """Remove everything in the folder, and no target of a link."""
    for name in sorted(entry.name for entry in folder.entries()):
        if stat.S_ISDIR(folder.lstat(name).st_mode):
            shutil.rmtree(name, dir_fd=folder.fileno())
        else:
            folder.unlink(name)


def files(folder: Folder) -> Iterator[tuple[str, int]]:
    """Yield every file and link below the folder, as (path relative to it, size), but what vanishes meanwhile."""
    yield from _files(folder, "", DEPTH_MAX)


def difference(ours: Folder, theirs: Folder) -> tuple[int, int]:
    """Count the bytes and files in which two trees differ; a differing file of equal length counts whole."""
    mine, other = dict(files(ours)), dict(files(theirs))
    total = differ = 0
    for name in mine.keys() | other.keys():
        if name in mine and name in other and same(ours, theirs, name):
            continue
        differ += 1
        total += abs(mine.get(name, 0) - other.get(name, 0)) or mine.get(name, 0)
    return total, differ


def _copy(source: Folder, target: Folder, without: frozenset[str], depth: int) -> tuple[bool, int]:
    _require_depth(source, depth)
    vanished, files = False, 0
    for name in sorted(entry.name for entry in source.entries()):
        if name in without:
            continue
        try:
            mode = source.lstat(name).st_mode
            if stat.S_ISDIR(mode):
                with source.folder(name) as below, target.make(name) as made:
                    inner_vanished, inner_files = _copy(below, made, without, depth - 1)
                vanished |= inner_vanished
                files += inner_files
            elif stat.S_ISLNK(mode):
                remove(target, name)
                os.symlink(source.link(name), name, dir_fd=target.fileno())
                files += 1
            elif stat.S_ISREG(mode):
                copy_file(source, target, name)
                files += 1
        except (FileNotFoundError, RefusedError):
            vanished = True
    return vanished, files


def _fresh(folder: Folder, name: str) -> int:
    """Return the handle of a new file, in place of whatever had its name."""
    remove(folder, name)
    return folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def remove(folder: Folder, name: str) -> None:
    """Remove a name and all below it, and no target of a link; do nothing if there is none."""
    try:
        folder.unlink(name)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        shutil.rmtree(name, dir_fd=folder.fileno())


def _files(folder: Folder, prefix: str, depth: int) -> Iterator[tuple[str, int]]:
    """Yield every file and link below the folder, as (path relative to the first folder, size)."""
    _require_depth(folder, depth)
    for name in sorted(entry.name for entry in folder.entries()):
        with suppress(FileNotFoundError):
            found = folder.lstat(name)
            if stat.S_ISDIR(found.st_mode):
                with folder.folder(name) as below:
                    yield from _files(below, f"{prefix}{name}/", depth - 1)
            elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                yield f"{prefix}{name}", found.st_size


def same(ours: Folder, theirs: Folder, name: str) -> bool:
    """Return True if both trees have the same bytes, or the same link, under this name."""
    modes = [folder.lstat(name).st_mode for folder in (ours, theirs)]
    if any(map(stat.S_ISLNK, modes)):
        return all(map(stat.S_ISLNK, modes)) and ours.link(name) == theirs.link(name)
    with os.fdopen(ours.open(name), "rb") as mine, os.fdopen(theirs.open(name), "rb") as other:
        while (piece := mine.read(_CHUNK_BYTES)) == other.read(_CHUNK_BYTES):
            if not piece:
                return True
    return False


def _require_depth(folder: Folder, depth: int) -> None:
    if depth < 0:
        text = f"folders are nested deeper than {DEPTH_MAX}; expected a data directory"
        raise PreconditionError(f"{folder.path}: {text}")
