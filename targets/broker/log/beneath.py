"""
The files of a data directory, in which others may put anything: only regular files are opened, through no link.

A link in the place of a file would let the broker cut or write a file elsewhere, and opening a FIFO may wait for
ever. So every folder is opened with `O_NOFOLLOW`, and what is in it by that descriptor: a folder that becomes a
link meanwhile is refused too. What is no regular file is refused before it is opened, since opening a device could
do anything. Nothing that is refused is changed. A hard link is a file like any other; but what is about to be
written anew is never an existing file (`create`), so that no other name of it changes.
The path of the data directory itself is the operator's, and its links are followed once, at the start.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

# The names of a folder: segments with what Kafka keeps beside each, or partitions.
NAMES_MAX: Final = 1_000_000

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: if a FIFO takes the file's place after it was looked at, opening it does not wait.
_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
# What the kernel says of a link, and of a socket or a FIFO without a reader, that came after the look.
_NOT_REGULAR: Final = frozenset({errno.ELOOP, errno.ENXIO})
_DEPTH_MAX: Final = 16
_READ_BYTES: Final = 1024 * 1024
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


class RefusedError(OSError):
    """A name of the data directory is not what the broker has there; the text names it, and what was expected."""

    def __init__(self, path: Path | str, what: str) -> None:
        # The name of a file may hold anything: a new line, a terminal's commands, bytes that are no text.
        super().__init__(errno.EINVAL, f"{str(path)!r}: {what}")

    def __str__(self) -> str:
        """Return where, what, and what was expected."""
        return str(self.strerror)


class Folder:
    """
    A folder of the data directory, open while the block runs, or until `close`.

    Raises:
        RefusedError: a name is a link, or of another kind than expected; nothing was changed.
        OSError: from the disk; names the file.
    """

    def __init__(self, path: Path, *, inside: int | None = None) -> None:
        """Open it; `inside` is the descriptor of an open folder that has it."""
        self.path = path
        name = path if inside is None else path.name
        try:
            self._fd = os.open(name, _FOLDER_FLAGS, dir_fd=inside)
        except OSError as error:
            # With both flags the kernel reports ENOTDIR for a link.
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                require_directory(path, os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode)
            error.filename = str(path)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
        """Return a descriptor of a regular file, which may be made if the flags say so."""
        with self._named(name):
            self._require_file(name, or_none=bool(flags & os.O_CREAT))
            fd = os.open(name, flags | _FILE_FLAGS, mode, dir_fd=self._fd)
            try:
                require_file(self.path / name, os.fstat(fd).st_mode)
            except OSError:
                os.close(fd)
                raise
            return fd

    def create(self, name: str, mode: int = 0o666) -> int:
        """Return a descriptor of a new file, in place of a regular file of that name."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            return self.open(name, flags, mode)
        except FileExistsError:
            self.unlink(name)
            return self.open(name, flags, mode)

    def read(self, name: str, bytes_max: int) -> bytes:
        """
        Return what is in a regular file.

        Raises:
            FileNotFoundError: there is none.
            RefusedError: also if it is longer than that.
        """
        fd = self.open(name)
        try:
            require_size(self.path / name, os.fstat(fd).st_size, bytes_max)
            pieces, left = [], bytes_max
            while left and (piece := os.read(fd, min(left, _READ_BYTES))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def has(self, name: str) -> bool:
        """Return True if there is a regular file of that name, False if there is nothing."""
        with self._named(name):
            return self._require_file(name, or_none=True)

    def size(self, name: str) -> int:
        """Return how many bytes a file has."""
        with self._named(name):
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_size

    def rename(self, name: str, to: str) -> None:
        """Rename a regular file; one that has the new name gives way."""
        with self._named(name):
            self._require_file(name)
        with self._named(to):
            self._require_file(to, or_none=True)
            os.rename(name, to, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def unlink(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove the name of a regular file."""
        with self._named(name):
            if self._require_file(name, or_none=missing_ok):
                os.unlink(name, dir_fd=self._fd)

    def clear(self, depth: int = _DEPTH_MAX) -> None:
        """Remove all that is in the folder, of any kind: of a link the link itself."""
        if not depth:
            raise RefusedError(self.path, f"more than {_DEPTH_MAX} directories within directories; expected files")
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in self.entries()]
        for name, is_directory in found:
            with self._named(name):
                if is_directory:
                    with Folder(self.path / name, inside=self._fd) as below:
                        below.clear(depth - 1)
                    os.rmdir(name, dir_fd=self._fd)
                else:
                    os.unlink(name, dir_fd=self._fd)

    def sync(self) -> None:
        """Make the names in the folder durable."""
        os.fsync(self._fd)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """
        Yield what is in the folder, without following a link.

        Raises:
            RefusedError: also if it has more than NAMES_MAX names.
        """
        with os.scandir(self._fd) as found:
            for count, entry in enumerate(found):
                if count >= NAMES_MAX:
                    raise RefusedError(self.path, f"more than {NAMES_MAX} names; expected no more")
                yield entry

    def names(self) -> list[str]:
        """Return the names in the folder, sorted; raises as entries."""
        return sorted(entry.name for entry in self.entries())

    def _require_file(self, name: str, *, or_none: bool = False) -> bool:
        """Look whether it is a regular file; return False if there is nothing, which must be allowed."""
        try:
            mode = os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_mode
        except FileNotFoundError:
            if not or_none:
                raise
            return False
        require_file(self.path / name, mode)
        return True

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Name the whole path in an error, as every call has a name in a folder alone."""
        try:
            yield
        except RefusedError:
            raise
        except OSError as error:
            path = self.path / name
            if error.errno in _NOT_REGULAR:
                raise RefusedError(path, "not a regular file; expected a regular file") from error
            error.filename, error.filename2 = str(path), None
            raise


def require_file(path: Path, mode: int) -> None:
    """Refuse what is no regular file."""
    if not stat.S_ISREG(mode):
        raise RefusedError(path, f"{_kind_of(mode)}; expected a regular file. Move it away, then start the broker")


def require_directory(path: Path, mode: int) -> None:
    """Refuse what is no directory."""
    if not stat.S_ISDIR(mode):
        raise RefusedError(path, f"{_kind_of(mode)}; expected a directory. Move it away, then start the broker")


def require_size(path: Path, size: int, bytes_max: int) -> None:
    """Refuse what is longer than any file of ours with that name."""
    if size > bytes_max:
        raise RefusedError(
            path, f"{size} bytes; expected at most {bytes_max}. Move it away, then start the broker"
        )


def make_data_directory(path: Path) -> Path:
    """
    Make a data directory when missing; return its path without links.

    Raises:
        RefusedError: something else has its name.
        OSError: from the disk.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        require_directory(path, path.lstat().st_mode)
        raise
    return path.resolve()


def open_file(path: Path, flags: int, mode: int = 0o644) -> int:
    """Return a descriptor of a regular file; raises as Folder."""
    with Folder(path.parent) as folder:
        return folder.open(path.name, flags, mode)


def rename(path: Path, to: Path) -> Path:
    """Rename a regular file within its folder; return its new path. Raises as Folder."""
    with Folder(path.parent) as folder:
        folder.rename(path.name, to.name)
    return to


def unlink(path: Path, *, missing_ok: bool = False) -> None:
    """Remove the name of a regular file; raises as Folder."""
    with Folder(path.parent) as folder:
        folder.unlink(path.name, missing_ok=missing_ok)


def remove_directory(path: Path) -> None:
    """Remove a directory with all that is in it; raises as Folder."""
    with Folder(path) as folder:
        folder.clear()
    path.rmdir()


def _kind_of(mode: int) -> str:
    return next((words for test, words in _KINDS if test(mode)), "of an unknown kind")
