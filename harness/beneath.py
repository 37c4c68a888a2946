"""
Open files below a folder that others may write to: never through a link, never outside, only regular files.

A node under test, or a stranger's disk, may have a link, a FIFO or a device where a file is expected. A path is
walked name by name, each name with `openat` and `O_NOFOLLOW`. So a folder that becomes a link between a listing
and an opening is refused too. What is not a regular file is refused before it is opened: opening a FIFO could wait
for ever, and opening a device could do anything.

    with Folder.at(path) as data, data.folder("orders-0") as partition:
        handle = partition.open("00000000000000000000.log")

Links in the path of the first folder are followed: whoever names that folder is trusted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: if a FIFO takes the file's place after it was looked at, opening it does not wait.
_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISREG, "a file"),
)


class RefusedError(OSError):
    """A name below the folder is a link, leads out, or is no regular file where one is expected."""

    def __str__(self) -> str:
        """Return what was found and expected; the caller names the file."""
        return str(self.strerror)


class Folder:
    """An open folder; every path is relative to it and stays below it."""

    def __init__(self, handle: int, path: Path) -> None:
        """Own the handle; the path is only for messages and for calls that need one."""
        self._handle = handle
        self.path = path

    @classmethod
    def at(cls, path: Path) -> Self:
        """
        Open the folder at a trusted path, whose links are followed.

        Raises:
            OSError: There is none, or it may not be opened.
        """
        return cls(os.open(path, _FOLDER_FLAGS), path)

    @classmethod
    def no_link(cls, path: Path) -> Self:
        """
        Open a folder that must not be a link, in a trusted one.

        Raises:
            RefusedError: It is a link, or no folder.
            OSError: There is none, or it may not be opened.
        """
        parent = os.open(path.parent, _FOLDER_FLAGS)
        try:
            return cls(_open_folder(parent, path.name), path)
        finally:
            os.close(parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle; safe to call twice."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def fileno(self) -> int:
        """Return the handle, for calls such as syncfs; the folder still owns it."""
        return self._handle

    def folder(self, relative: str) -> Folder:
        """
        Open a folder below this one.

        Raises:
            RefusedError: A name of the path is a link or no folder, or the path leads out.
            OSError: It is missing, or may not be opened.
        """
        return self.below(parts(relative))

    def make(self, relative: str) -> Folder:
        """Open a folder below this one, and make those of its path that are missing; raises as folder."""
        return self.below(parts(relative), make=True)

    def below(self, names: Sequence[str], *, make: bool = False) -> Folder:
        """Open the folder that these names lead to, one by one, this one itself without any; raises as folder."""
        handle = os.dup(self._handle)
        try:
            for name in names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=handle)
                below = _open_folder(handle, name)
                os.close(handle)
                handle = below
        except BaseException:
            os.close(handle)
            raise
        return Folder(handle, self.path.joinpath(*names))

    def open(self, relative: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """
        Open a regular file below this folder and return its handle.

        Raises:
            RefusedError: It is not a regular file, a name of the path is a link, or the path leads out.
            OSError: It is missing, or may not be opened.
        """
        with self._parent(relative) as (parent, name):
            try:
                _require_file(os.lstat(name, dir_fd=parent), relative)
            except FileNotFoundError:
                if not flags & os.O_CREAT:
                    raise
            try:
                handle = os.open(name, flags | _FILE_FLAGS, mode, dir_fd=parent)
            except OSError as error:
                # It became a link, or a socket or FIFO without a reader, after it was looked at.
                if error.errno in {errno.ELOOP, errno.ENXIO}:
                    raise RefusedError(error.errno, "not a regular file; expected one", relative) from error
                raise
        try:
            _require_file(os.fstat(handle), relative)
        except OSError:
            os.close(handle)
            raise
        return handle

    def lstat(self, relative: str) -> os.stat_result:
        """
        Return what is known of a name below this folder, of a link itself and not of its target.

        Raises:
            RefusedError: A name before the last is a link or no folder, or the path leads out.
            OSError: It is missing, or may not be looked at.
        """
        with self._parent(relative) as (parent, name):
            return os.lstat(name, dir_fd=parent)

    def link(self, relative: str) -> str:
        """
        Return what a link names, which may be anything.

        Raises:
            RefusedError: As lstat.
            OSError: It is missing, or no link.
        """
        with self._parent(relative) as (parent, name):
            return os.readlink(name, dir_fd=parent)

    def unlink(self, relative: str) -> None:
        """
        Remove a name that is no folder; of a link, the link itself.

        Raises:
            RefusedError: As lstat.
            OSError: It is missing, a folder, or may not be removed.
        """
        with self._parent(relative) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """
        Yield the entries of the folder; ask them with `follow_symlinks=False` alone.

        Raises:
            OSError: The folder cannot be listed.
        """
        with os.scandir(self._handle) as found:
            yield from found

    @contextmanager
    def _parent(self, relative: str) -> Iterator[tuple[int, str]]:
        """Yield the handle of the folder that has the path's last name, and that name."""
        *above, name = parts(relative)
        if not above:
            yield self._handle, name
            return
        with self.below(above) as parent:
            yield parent.fileno(), name


def parts(relative: str) -> list[str]:
    """
    Return the names of a relative path.

    Raises:
        RefusedError: It is empty or absolute, or has a name that leads out or nowhere, such as `..`.
    """
    names = relative.split("/")
    if any(name in {"", ".", ".."} or "\0" in name for name in names):
        text = f"{relative!r} is no path below a folder; expected names without `..`"
        raise RefusedError(errno.EXDEV, text, relative)
    return names


def kind_of(mode: int) -> str:
    """Return what a file of this mode is, as words: `a FIFO`."""
    return next((words for test, words in _KINDS if test(mode)), "of an unknown kind")


def _open_folder(parent: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        # With both flags the kernel reports ENOTDIR for a link.
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        found = kind_of(os.lstat(name, dir_fd=parent).st_mode)
        raise RefusedError(error.errno, f"{found}; expected a folder, and no link is followed", name) from error


def _require_file(found: os.stat_result, relative: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(errno.EINVAL, f"{kind_of(found.st_mode)}; expected a regular file", relative)
