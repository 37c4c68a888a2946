"""
A node's disk: a folder that can be flushed from outside, and can lose power, depending on its tier.

    none       PlainDisk: a folder; it cannot lose power
    watermark  WatermarkDisk: a folder, and a shadow copy of exactly what is durable (needs no root)
    loop       LoopDisk, in loopfs.py: a filesystem of its own, whose unflushed pages are really lost
"""

from __future__ import annotations

import ctypes
import filecmp
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from harness.model import PreconditionError

# How often a copy is started again because a file vanished meanwhile.
COPY_PASSES_MAX: Final = 50

# Uid and gid as which a container's node runs; None: ours.
Owner: TypeAlias = tuple[int, int] | None


class Victim(Protocol):
    """The process whose disk loses power."""

    def alive(self) -> bool:
        """Return True if it exists; a paused one does."""

    def pause(self) -> str:
        """Freeze it."""

    def kill(self) -> str:
        """SIGKILL it."""


class Disk(Protocol):
    """One node's disk; calls from any thread for one disk run one after another."""

    tier: str
    data: Path

    def flush(self) -> str:
        """Make everything on it durable."""

    def note_flushed(self, path: str, length: int) -> None:
        """Record that the node itself made the first `length` bytes of a file durable."""

    def power_loss(self, victim: Victim, drain: Callable[[], None]) -> str:
        """Kill the victim, call drain, then restore the disk to what is durable."""


def sync_filesystem(folder: Path) -> str:
    """Flush the whole filesystem that holds the folder (syncfs); return a text with the time it took."""
    started = time.monotonic()
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if libc.syncfs(handle) != 0:
            raise PreconditionError(f"flush {folder}: syncfs: {os.strerror(ctypes.get_errno())}; expected success")
    finally:
        os.close(handle)
    return f"syncfs in {(time.monotonic() - started) * 1000:.1f} ms"


def set_owner(tree: Path, owner: Owner) -> None:
    """Change the owner of the tree; do nothing for None."""
    if owner is not None:
        os.chown(tree, *owner)
        for folder, folders, files in os.walk(tree):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), *owner, follow_symlinks=False)


class PlainDisk:
    """A folder on the machine's own disk: it can be flushed, but cannot lose power."""

    def __init__(self, data: Path, owner: Owner = None) -> None:
        """Make the folder, owned by the owner."""
        self.tier = "none"
        self.data = data
        data.mkdir(parents=True)
        set_owner(data, owner)

    def flush(self) -> str:
        """Flush the machine's filesystem that holds the folder."""
        return sync_filesystem(self.data)

    def note_flushed(self, path: str, length: int) -> None:
        """Do nothing: this disk cannot lose power."""

    def power_loss(self, victim: Victim, drain: Callable[[], None]) -> str:
        """Raise PreconditionError: nothing would be lost."""
        del victim, drain
        raise PreconditionError(
            f"power loss of {self.data}: it is a plain folder; expected a node added with a disk"
        )


class WatermarkDisk:
    """
    A folder and its shadow, a copy of exactly what is durable, so that a power loss needs no root.

    A flush from outside copies the folder to its shadow. When the node reports a flush of its own, the first bytes
    of that one file are copied. If the node truncated and rewrote bytes below that length between its flush and
    our copy, the rewritten bytes count as durable. Deletions and renames become durable with the next flush from
    outside, or with the file's own next report.
    """

    def __init__(self, data: Path, shadow: Path, owner: Owner = None) -> None:
        """Make both folders; the owner owns the data, before and after a power loss."""
        self.tier = "watermark"
        self.data = data
        self._shadow = shadow
        self._owner = owner
        self._mutex = threading.Lock()
        data.mkdir(parents=True)
        shadow.mkdir(parents=True)
        set_owner(data, owner)

    def flush(self) -> str:
        """Copy the folder to the shadow."""
        with self._mutex:
            fresh = self._shadow.with_name(self._shadow.name + ".new")
            files = _copy_while_used(self.data, fresh)
            shutil.rmtree(self._shadow)
            fresh.rename(self._shadow)
        return f"{files} files copied to the shadow"

    def note_flushed(self, path: str, length: int) -> None:
        """Copy the first bytes of the file to the shadow; do nothing if the file is gone by now."""
        source = self.data / path
        if self.data not in Path(os.path.normpath(source)).parents:
            raise PreconditionError(f"flush of {path!r}: expected a path below {self.data}")
        with self._mutex:
            try:
                with source.open("rb") as file:
                    content = file.read(length)
            except (FileNotFoundError, NotADirectoryError):
                return
            target = self._shadow / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def power_loss(self, victim: Victim, drain: Callable[[], None]) -> str:
        """Kill the victim, then restore the shadow: unflushed bytes, names and truncations are undone."""
        if victim.alive():
            victim.kill()
        drain()
        with self._mutex:
            undone_bytes, undone_files = _difference(self.data, self._shadow)
            for child in self.data.iterdir():
                if child.is_dir() and not child.is_symlink():
                    shutil.rmtree(child)
                else:
                    child.unlink()
            shutil.copytree(self._shadow, self.data, dirs_exist_ok=True, symlinks=True)
            set_owner(self.data, self._owner)
            if _difference(self.data, self._shadow) != (0, 0):
                raise PreconditionError(f"power loss of {self.data}: it differs from its shadow afterwards")
        return f"killed; {undone_bytes} bytes in {undone_files} files undone (watermark)"


def _copy_while_used(source: Path, target: Path) -> int:
    """
    Copy a tree to which a node writes meanwhile; return the number of files.

    The copy has every file that existed at the call. If a file vanishes during a pass (a temporary one that is
    renamed), the pass starts again, because it may have missed the new name.
    """
    for _ in range(COPY_PASSES_MAX):
        shutil.rmtree(target, ignore_errors=True)
        vanished, files = _copy_pass(source, target)
        if not vanished:
            return files
    raise PreconditionError(
        f"flush {source}: files vanished in each of {COPY_PASSES_MAX} passes; expected one quiet pass"
    )


def _copy_pass(source: Path, target: Path) -> tuple[bool, int]:
    """Copy a tree once; return whether a file vanished, and how many files were copied."""
    target.mkdir()
    vanished = False
    files = 0
    try:
        entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    except FileNotFoundError:
        return True, 0
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                inner_vanished, inner_files = _copy_pass(Path(entry.path), target / entry.name)
                vanished |= inner_vanished
                files += inner_files
            else:
                shutil.copy2(entry.path, target / entry.name, follow_symlinks=False)
                files += 1
        except FileNotFoundError:
            vanished = True
    return vanished, files


def _difference(data: Path, shadow: Path) -> tuple[int, int]:
    """Count the bytes and files in which two trees differ; a differing file of equal length counts whole."""
    ours, theirs = dict(_files(data)), dict(_files(shadow))
    total = files = 0
    for name in ours.keys() | theirs.keys():
        if name in ours and name in theirs and filecmp.cmp(data / name, shadow / name, shallow=False):
            continue
        files += 1
        total += abs(ours.get(name, 0) - theirs.get(name, 0)) or ours.get(name, 0)
    return total, files


def _files(root: Path) -> Iterator[tuple[str, int]]:
    """Yield every file below the root, as (path relative to root, size)."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            yield str(path.relative_to(root)), path.lstat().st_size
