"""
A node's disk: a folder that can be flushed from outside, and can lose power, depending on its tier.

    none       PlainDisk: a folder; it cannot lose power
    watermark  WatermarkDisk: a folder, and a shadow copy of exactly what is durable (needs no root)
    loop       LoopDisk, in loopfs.py: a filesystem of its own, whose unflushed pages are really lost

Over each of the last two a FaultyDisk (faulty.py) may lie, through which the node sees it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, Protocol, TypeAlias

from harness.beneath import Folder, RefusedError, parts
from harness.cluster.disk_error import DiskError
from harness.hosts.lost_pages import contents, keep_pages, lost_between
from harness.hosts.trees import copy_file, copy_pass, difference, empty, same
from harness.hosts.unwritten import those, unwritten
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

    def resume(self) -> str:
        """Resume it."""

    def kill(self) -> str:
        """SIGKILL it."""


class Disk(Protocol):
    """
    One node's disk; calls from any thread for one disk run one after another.

    Attributes:
        data: the node's data directory, as the harness reads it.
        mounted: the same, as the node sees it.
    """

    tier: str
    data: Path
    mounted: Path

    def flush(self) -> str:
        """Make everything on it durable."""

    def unflushed(self) -> tuple[str, ...]:
        """Return the files that have bytes which a power loss would take now; as unwritten.py does."""

    def note_flushed(self, path: str, length: int) -> None:
        """Record that the node itself made the first `length` bytes of a file durable."""

    def power_loss(self, victim: Victim, drain: Callable[[], None], torn: Random | None = None) -> str:
        """Kill the victim, call drain, then restore the disk to what is durable, and to chosen pages if torn."""

    def lose(self, aside: Path) -> str:
        """Empty it, durably, after copying what it has to a new folder; the node is down."""

    def break_down(self, error: DiskError, victim: Victim) -> str:
        """Let it fail so from now on; return what was seen of it; raise PreconditionError if this disk cannot."""

    def state(self) -> str:
        """Return what is wrong with it now: one of DiskError, "" for nothing."""

    def mend(self, victim: Victim) -> str:
        """Let it work again; return what it refused, "" for nothing that was counted."""


def sync_filesystem(folder: Path) -> str:
    """Flush the whole filesystem that holds the folder (syncfs); return a text with the time it took."""
    started = time.monotonic()
    libc = ctypes.CDLL(None, use_errno=True)
    # Through a link that a node has put there, another filesystem would be flushed.
    with opened(folder) as filesystem:
        if libc.syncfs(filesystem.fileno()) != 0:
            raise PreconditionError(f"flush {folder}: syncfs: {os.strerror(ctypes.get_errno())}; expected success")
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
        self.data = self.mounted = data
        data.mkdir(parents=True)
        set_owner(data, owner)

    def flush(self) -> str:
        """Flush the machine's filesystem that holds the folder."""
        return sync_filesystem(self.data)

    def unflushed(self) -> tuple[str, ...]:
        """Return the files that the kernel has not written whole."""
        with opened(self.data) as data:
            return unwritten(data)

    def note_flushed(self, path: str, length: int) -> None:
        """Do nothing: this disk cannot lose power."""

    def power_loss(self, victim: Victim, drain: Callable[[], None], torn: Random | None = None) -> str:
        """Raise PreconditionError: nothing would be lost."""
        del victim, drain, torn
        raise PreconditionError(
            f"power loss of {self.data}: it is a plain folder; expected a node added with a disk"
        )

    def lose(self, aside: Path) -> str:
        """Empty the folder."""
        return set_aside(self.data, aside)

    def state(self) -> str:
        """Return that nothing is wrong."""
        return ""

    def break_down(self, error: DiskError, victim: Victim) -> str:
        """Raise PreconditionError: a folder of the machine's own disk works."""
        del victim
        raise PreconditionError(
            f"disk error {error}: {self.data} is a plain folder; expected a node added with a disk"
        )

    def mend(self, victim: Victim) -> str:
        """Do nothing: it always works."""
        del victim
        return ""


class WatermarkDisk:
    """
    A folder and its shadow, a copy of exactly what is durable, so that a power loss needs no root.

    A flush from outside copies the folder to its shadow. When the node reports a flush of its own, the first bytes
    of that one file are copied. If the node truncated and rewrote bytes below that length between its flush and
    our copy, the rewritten bytes count as durable. Deletions and renames become durable with the next flush from
    outside, or with the file's own next report.

    The node may put links into its folder: none is followed, neither there nor in the shadow, which has copies of
    them.
    """

    def __init__(self, data: Path, shadow: Path, owner: Owner = None) -> None:
        """Make both folders; the owner owns the data, before and after a power loss."""
        self.tier = "watermark"
        self.data = self.mounted = data
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
            with opened(self.data) as data:
                files = _copy_while_used(data, fresh)
            shutil.rmtree(self._shadow)
            fresh.rename(self._shadow)
        return f"{files} files copied to the shadow"

    def unflushed(self) -> tuple[str, ...]:
        """Return the files that the shadow does not have, or not as they are."""
        with self._mutex, opened(self.data) as data, opened(self._shadow) as shadow:
            return those(data, lambda path: not _is_copied(data, shadow, path))

    def note_flushed(self, path: str, length: int) -> None:
        """
        Copy the first bytes of the file to the shadow; do nothing if the file is gone by now.

        Raises:
            PreconditionError: The path leads out of the data, or is not one of a regular file.
        """
        with self._mutex, opened(self.data) as data, opened(self._shadow) as shadow:
            try:
                *above, name = parts(path)
                with data.below(above) as source:
                    # Looked at first, so that the shadow gets no folder for a file that is gone.
                    os.close(source.open(name))
                    with shadow.below(above, make=True) as target:
                        copy_file(source, target, name, length=length)
            except (FileNotFoundError, NotADirectoryError):
                return
            except RefusedError as error:
                raise PreconditionError(
                    f"flush of {path!r}: {error}; expected a path below {self.data}"
                ) from error

    def lose(self, aside: Path) -> str:
        """Empty the folder and its shadow."""
        with self._mutex:
            seen = set_aside(self.data, aside)
            with opened(self._shadow) as shadow:
                empty(shadow)
        return seen

    def state(self) -> str:
        """Return that nothing is wrong."""
        return ""

    def break_down(self, error: DiskError, victim: Victim) -> str:
        """Raise PreconditionError: only a FaultyDisk above makes it fail."""
        del victim
        raise PreconditionError(f"disk error {error}: {self.data} has no FUSE over it; expected one")

    def mend(self, victim: Victim) -> str:
        """Do nothing: it always works."""
        del victim
        return ""

    def power_loss(self, victim: Victim, drain: Callable[[], None], torn: Random | None = None) -> str:
        """Kill the victim, then restore the shadow: unflushed bytes, names and truncations are undone."""
        if victim.alive():
            victim.kill()
        drain()
        with self._mutex, opened(self.data) as data, opened(self._shadow) as shadow:
            undone_bytes, undone_files = difference(data, shadow)
            before = contents(data)
            empty(data)
            copy_pass(shadow, data)
            if difference(data, shadow) != (0, 0):
                raise PreconditionError(f"power loss of {self.data}: it differs from its shadow afterwards")
            if torn is not None:
                keep_pages(data, before, torn)
                empty(shadow)
                copy_pass(data, shadow)
            set_owner(self.data, self._owner)
            lost = lost_between(before, contents(data))
        return f"killed; {undone_bytes} bytes in {undone_files} files undone (watermark); {lost}"


def set_aside(data: Path, aside: Path) -> str:
    """Copy a node's folder to a new one, then empty it; return what was there."""
    aside.mkdir(parents=True)
    with opened(data) as lost, Folder.at(aside) as kept:
        _, files = copy_pass(lost, kept)
        empty(lost)
        left = list(lost.entries())
    if left:
        raise PreconditionError(f"lose {data}: {left[0].name} is still there; expected an empty disk")
    return f"{files} files lost, a copy of them is in {aside.name}; the disk is empty"


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Open a folder that a node may have replaced by a link, which is refused."""
    try:
        folder = Folder.no_link(path)
    except RefusedError as error:
        raise PreconditionError(f"{path}: {error}") from error
    with folder:
        yield folder


def _is_copied(data: Folder, shadow: Folder, path: str) -> bool:
    try:
        shadow.lstat(path)
    except FileNotFoundError:
        return False
    return same(data, shadow, path)


def _copy_while_used(source: Folder, target: Path) -> int:
    """
    Copy a tree to which a node writes meanwhile; return the number of files.

    The copy has every file that existed at the call. If a file vanishes during a pass (a temporary one that is
    renamed), the pass starts again, because it may have missed the new name.
    """
    for _ in range(COPY_PASSES_MAX):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        with opened(target) as copy:
            vanished, files = copy_pass(source, copy)
        if not vanished:
            return files
    raise PreconditionError(
        f"flush {source.path}: files vanished in each of {COPY_PASSES_MAX} passes; expected one quiet pass"
    )
