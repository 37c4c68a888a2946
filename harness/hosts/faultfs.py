"""
A filesystem that passes every call on to a folder, and fails or delays those that it is told to:
`python -m harness.hosts.faultfs FOLDER MOUNT_POINT NAME [--shared]`, one process for each disk.

It is told through an extended attribute of its root, CONTROL: setting it takes a word of fault_rules.REFUSED, MEND
or SYNCED, and has returned when the next call is treated so; getting it returns what was refused. So there is no
file to watch, and an answer proves that the process is at work.

One thread serves all calls, so a slow disk is slow for everybody. Files are opened with direct IO, so that every
read and write arrives here and none is answered by the page cache of this mount; except files that are mapped into
memory, which direct IO does not allow. Links cannot be made: nobody leads this process out of its folder.
Source:  FUSE in the kernel's documentation, "FUSE I/O Modes"; mfusepy, which binds libfuse by ctypes.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness.hosts.fault_rules import ASK, CHANGE, FSYNC, MAKE, READ, WRITE, FaultRules

CONTROL: Final = "user.fencepost.disk"
MEND: Final = "mend"
SYNCED: Final = "synced"
# What is mapped into memory: Apache Kafka's indexes; RocketMQ's files named by a number, and `checkpoint`.
MAPPED: Final = re.compile(r"(\.index|\.timeindex|/\d{17,20}|/checkpoint)$")
_STAT: Final = (
    "st_mode",
    "st_ino",
    "st_nlink",
    "st_uid",
    "st_gid",
    "st_size",
    "st_blocks",
    "st_blksize",
    "st_rdev",
)
_TIMES: Final = ("st_atime", "st_mtime", "st_ctime")
_STATVFS: Final = (
    *("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail", "f_flag"),
    "f_namemax",
)
_WRITES: Final = os.O_WRONLY | os.O_RDWR


class FaultFs:
    """
    The calls of the filesystem, on a folder that is held open; see mfusepy.Operations for each.

    A path begins with a slash. A file that is unlinked while it is open has none any more, and every later call on
    it fails with ENOENT: brokers close a file before they remove it.
    """

    use_ns = True

    def __init__(self, folder: int, owner_of_call: Any = None) -> None:
        """Serve the folder with this descriptor; `owner_of_call` returns (uid, gid, pid) of who calls."""
        self._root = folder
        self._owner_of_call = owner_of_call
        self._paths: dict[int, str] = {}
        self.rules = FaultRules(self._length_of, self._cut)

    # --- control -------------------------------------------------------------------------------------------
    def setxattr(self, path: str, name: str, value: bytes, _options: int, _position: int = 0) -> int:
        """Do what the harness says; nothing else has attributes here."""
        if path != "/" or name != CONTROL:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        word = bytes(value).decode("utf-8", errors="replace")
        if word == MEND:
            self.rules.mend()
        elif word == SYNCED:
            self.rules.all_durable()
        else:
            self.rules.set(word)
        return 0

    def getxattr(self, path: str, name: str, _position: int = 0) -> bytes:
        """Return what was seen, as JSON."""
        if path != "/" or name != CONTROL:
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        return json.dumps(self.rules.seen()).encode()

    # --- names ---------------------------------------------------------------------------------------------
    def getattr(self, path: str, _fi: Any = None) -> dict[str, int]:
        """Return a file's state."""
        found = os.stat(_below(path), dir_fd=self._root, follow_symlinks=False)
        fields = {name: getattr(found, name) for name in _STAT}
        return fields | {name: getattr(found, f"{name}_ns") for name in _TIMES}

    def readdir(self, path: str, _handle: Any) -> list[str]:
        """List a folder."""
        with self._folder(path) as folder:
            return [".", "..", *os.listdir(folder)]

    def readlink(self, path: str) -> str:
        """Return the target of a link that was there before."""
        return os.readlink(_below(path), dir_fd=self._root)

    def statfs(self, _path: str) -> dict[str, int]:
        """Return how full the disk below is."""
        self.rules.check(ASK, "")
        found = os.fstatvfs(self._root)
        return {name: getattr(found, name) for name in _STATVFS}

    def mkdir(self, path: str, mode: int) -> int:
        """Make a folder that belongs to who calls."""
        with self._call(MAKE, path):
            os.mkdir(_below(path), mode, dir_fd=self._root)
            self._give(path)
        return 0

    def unlink(self, path: str) -> int:
        """Remove a name."""
        with self._call(CHANGE, path):
            os.unlink(_below(path), dir_fd=self._root)
            self.rules.removed(path)
        return 0

    def rmdir(self, path: str) -> int:
        """Remove an empty folder."""
        with self._call(CHANGE, path):
            os.rmdir(_below(path), dir_fd=self._root)
        return 0

    def rename(self, old: str, new: str) -> int:
        """Give a file another name."""
        with self._call(CHANGE, new):
            os.rename(_below(old), _below(new), src_dir_fd=self._root, dst_dir_fd=self._root)
            self.rules.renamed(old, new)
            for handle, path in self._paths.items():
                if path == old or path.startswith(f"{old}/"):
                    self._paths[handle] = new + path.removeprefix(old)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        """Change a mode."""
        with self._call(CHANGE, path):
            os.chmod(_below(path), mode, dir_fd=self._root)
        return 0

    def utimens(self, path: str, times: Any = None) -> int:
        """Change the times, which no rule refuses."""
        os.utime(_below(path), ns=times, dir_fd=self._root, follow_symlinks=False)
        return 0

    def truncate(self, path: str, length: int, _fi: Any = None) -> int:
        """Cut or extend a file."""
        with self._call(CHANGE, path):
            self._cut(path, length)
            self.rules.cut(path, length)
        return 0

    # --- open files ----------------------------------------------------------------------------------------
    def create(self, path: str, mode: int, fi: Any) -> int:
        """Make and open a file that belongs to who calls."""
        with self._call(MAKE, path):
            flags = (fi.flags & ~os.O_NOFOLLOW) | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._open(path, os.open(_below(path), flags, mode, dir_fd=self._root), fi)
            self._give(path)
            self.rules.created(path)
        return 0

    def open(self, path: str, fi: Any) -> int:
        """Open a file; O_APPEND is the kernel's, which says where to write."""
        writes = fi.flags & _WRITES
        kind = CHANGE if writes else ""
        with self._call(kind, path):
            if writes:
                self.rules.opened(path)
            flags = (fi.flags & ~os.O_APPEND) | os.O_NOFOLLOW | os.O_CLOEXEC
            self._open(path, os.open(_below(path), flags, dir_fd=self._root), fi)
            if fi.flags & os.O_TRUNC:
                self.rules.cut(path, 0)
        return 0

    def read(self, _path: str, size: int, offset: int, fi: Any) -> bytes:
        """Read bytes."""
        with self._call(READ, self._paths[fi.fh], size):
            return os.pread(fi.fh, size, offset)

    def write(self, _path: str, data: bytes, offset: int, fi: Any) -> int:
        """Write bytes; a full disk takes a half of them first."""
        with self._call(WRITE, self._paths[fi.fh], len(data)):
            return os.pwrite(fi.fh, data[: self.rules.fits(len(data))], offset)

    def fsync(self, _path: str, datasync: int, fi: Any) -> int:
        """Make a file durable."""
        path = self._paths[fi.fh]
        with self._call(FSYNC, path):
            (os.fdatasync if datasync else os.fsync)(fi.fh)
            self.rules.flushed(path)
        return 0

    def fsyncdir(self, path: str, _datasync: int, _handle: Any) -> int:
        """Make the names in a folder durable."""
        with self._call(FSYNC, path), self._folder(path) as folder:
            os.fsync(folder)
        return 0

    def release(self, _path: str, fi: Any) -> int:
        """Close a file."""
        del self._paths[fi.fh]
        os.close(fi.fh)
        return 0

    # --- helpers -------------------------------------------------------------------------------------------
    @contextmanager
    def _call(self, kind: str, path: str, size: int = 0) -> Iterator[None]:
        """Do a call unless a rule refuses it, and note what the disk below refuses."""
        self.rules.check(kind, path, size)
        try:
            yield
        except OSError as error:
            self.rules.failed(error, kind, path, size)
            raise

    def _open(self, path: str, handle: int, fi: Any) -> None:
        fi.fh = handle
        fi.direct_io = 0 if MAPPED.search(path) else 1
        self._paths[handle] = path

    def _give(self, path: str) -> None:
        """Let a new file belong to who calls, if this process is root and the caller is not."""
        if self._owner_of_call is None or os.geteuid() != 0:
            return
        uid, gid, _ = self._owner_of_call()
        if (uid, gid) != (0, 0):
            os.chown(_below(path), uid, gid, dir_fd=self._root, follow_symlinks=False)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        handle = os.open(_below(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._root)
        try:
            yield handle
        finally:
            os.close(handle)

    def _length_of(self, path: str) -> int:
        found = os.stat(_below(path), dir_fd=self._root, follow_symlinks=False)
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def _cut(self, path: str, length: int) -> None:
        handle = os.open(_below(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._root)
        try:
            os.ftruncate(handle, length)
        finally:
            os.close(handle)


def _below(path: str) -> str:
    """Return a path of the mount as one relative to the folder."""
    return path.lstrip("/") or "."


def main() -> int:
    """Mount, and serve until it is unmounted; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness.hosts.faultfs", description="A disk that can fail.")
    parser.add_argument("folder")
    parser.add_argument("mount_point")
    parser.add_argument("name", help="the source of the mount, by which its run knows it")
    parser.add_argument("--shared", action="store_true", help="other users may use it: needs root")
    arguments = parser.parse_args()
    import mfusepy

    class Served(FaultFs, mfusepy.Operations):  # type: ignore[misc]
        """The calls, with the library's own answers for those that are not here."""

    folder = os.open(arguments.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    os.umask(0)  # a mode arrives with the caller's own mask applied
    shared = {"allow_other": True} if arguments.shared else {}
    mfusepy.FUSE(
        Served(folder, mfusepy.fuse_get_context),
        arguments.mount_point,
        raw_fi=True,
        foreground=True,
        nothreads=True,
        fsname=arguments.name,
        subtype="fencepost",
        default_permissions=True,
        hard_remove=True,
        # The harness changes files below the mount too: what is not looked up again would be out of date.
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
        **shared,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
