"""
What goes wrong with an ext4 of the run's own: it is full, read-only, or has some of its pages and not the others.

Every function takes a mount that its caller has made; harness/hosts/loopfs.py knows that it is one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from pathlib import Path
from random import Random
from typing import Final

from harness.beneath import Folder
from harness.hosts.lost_pages import PAGE_BYTES, chosen_pages
from harness.model import PreconditionError

FILLER: Final = "filler"
PROBE: Final = "fill-probe"
# sync_file_range(2): wait for what is being written, write, and wait for that.
_SYNC_PAGES: Final = 7


def fill(mount_point: Path) -> str:
    """
    Allocate all that is free for one file, and return how much; a write from outside must then fail with ENOSPC.

    Blocks that a file has already may still be written, so a broker meets it when it needs a new one.
    """
    with Folder.at(mount_point) as root:
        filler = root.open(FILLER, os.O_WRONLY | os.O_CREAT)
        try:
            size, piece = 0, os.fstatvfs(filler).f_bsize * max(1, os.fstatvfs(filler).f_bfree)
            while piece >= PAGE_BYTES:
                try:
                    os.posix_fallocate(filler, size, piece)
                    size += piece
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2
        finally:
            os.close(filler)
        probe = root.open(PROBE, os.O_WRONLY | os.O_CREAT)
        try:
            os.write(probe, b"x")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                return f"{size} bytes filled, a write then failed with ENOSPC"
            raise
        finally:
            os.close(probe)
            root.unlink(PROBE)
    raise PreconditionError(f"fill {mount_point}: a write succeeded after {size} bytes; expected ENOSPC")


def free(mount_point: Path) -> str:
    """Remove the file that fills the disk, and return what was seen; a write must then succeed."""
    with Folder.at(mount_point) as root:
        root.unlink(FILLER)
        probe = root.open(PROBE, os.O_WRONLY | os.O_CREAT)
        try:
            os.write(probe, bytes(PAGE_BYTES))
        except OSError as error:
            raise PreconditionError(
                f"free {mount_point}: {error.strerror}; expected a write to succeed"
            ) from error
        finally:
            os.close(probe)
            root.unlink(PROBE)
    return "freed"


def make_read_only(mount_point: Path) -> str:
    """
    Report an error of the filesystem to the kernel, which makes it read-only at once, though files are open.

    The caller has flushed it: what is not written by now never is.
    Source:  the kernel's ABI, /sys/fs/ext4/<disk>/trigger_fs_error, with the mount option errors=remount-ro.
    """
    device = os.stat(mount_point).st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    try:
        Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("fencepost", encoding="ascii")
    except OSError as error:
        raise PreconditionError(f"{mount_point}: {error}; expected a kernel that takes ext4's errors") from error
    with Folder.at(mount_point) as root:
        try:
            os.close(root.open(PROBE, os.O_WRONLY | os.O_CREAT))
        except OSError as error:
            if error.errno == errno.EROFS:
                return "a file could then not be made: EROFS"
            raise
    raise PreconditionError(f"{mount_point}: a file was made after the error; expected EROFS")


def sync_pages(folder: Folder, chance: Random) -> int:
    """Write some pages of every file below to the disk, which chance chooses, and return how many."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = 0
    for name in sorted(entry.name for entry in folder.entries()):
        mode = folder.lstat(name).st_mode
        if stat.S_ISDIR(mode):
            with folder.folder(name) as below:
                done += sync_pages(below, chance)
        elif stat.S_ISREG(mode):
            handle = folder.open(name)
            try:
                for at in chosen_pages(os.fstat(handle).st_size, chance):
                    offset, size = ctypes.c_int64(at), ctypes.c_int64(PAGE_BYTES)
                    if libc.sync_file_range(handle, offset, size, _SYNC_PAGES) != 0:
                        why = os.strerror(ctypes.get_errno())
                        raise PreconditionError(f"{name}: sync_file_range at {at}: {why}; expected success")
                    done += 1
            finally:
                os.close(handle)
    return done
