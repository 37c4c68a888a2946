"""
Shut down an ext4 of the run's own, while it is in use: every later call on it fails with EIO.

Safety: the ioctl goes only to a filesystem that differs from its parent's, and whose loop device is backed by a
file in this run's own folder. Both are checked on the same handle that the ioctl then uses. After a failed mount,
the mount point is a folder of the machine's own disk, and shutting that down would take the machine down.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from pathlib import Path
from typing import Final

from harness.cleanup import mounts
from harness.model import PreconditionError

FS_IOC_SHUTDOWN: Final = 0x8004587D
# What a shutdown writes before: all that there is; the journal alone; nothing.
FLUSH_ALL: Final = 0
LOG_FLUSH: Final = 1
NO_LOG_FLUSH: Final = 2
PROBE_FILE: Final = "power-probe"


def shut_down(mount_point: Path, folder: Path, flags: int = NO_LOG_FLUSH) -> float:
    """
    Make the mounted filesystem lose what it has not written, and verify that a write then fails.

    Args:
        flags: what is written before: NO_LOG_FLUSH, LOG_FLUSH or FLUSH_ALL.

    Returns:
        Milliseconds that the ioctl took.

    Raises:
        PreconditionError: It is no loop mount backed by a file in the folder, and nothing was done; or a write
            still succeeds afterwards.
    """
    handle = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _require_own_loop(handle, mount_point, folder)
        probe = os.open(PROBE_FILE, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        try:
            started = time.monotonic()
            fcntl.ioctl(handle, FS_IOC_SHUTDOWN, struct.pack("I", flags))
            took_ms = (time.monotonic() - started) * 1000
            seen = _write_error(probe)
            if seen != errno.EIO:
                raise PreconditionError(
                    f"power loss of {mount_point}: a write after the shutdown gave "
                    f"{errno.errorcode.get(seen, 'success')}; expected EIO"
                )
        finally:
            os.close(probe)
    finally:
        os.close(handle)
    return took_ms


def _write_error(handle: int) -> int:
    """Write a byte and return the error number; 0 if the write succeeds."""
    try:
        os.write(handle, b"x")
    except OSError as error:
        return error.errno or 0
    return 0


def require_own_mount(mount_point: Path, folder: Path) -> None:
    """Raise PreconditionError unless a loop filesystem of the folder is mounted there."""
    handle = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _require_own_loop(handle, mount_point, folder)
    finally:
        os.close(handle)


def _require_own_loop(handle: int, mount_point: Path, folder: Path) -> None:
    """Raise PreconditionError unless the filesystem is a loop mount of a file in the folder."""
    device = os.fstat(handle).st_dev
    if device == mount_point.parent.stat().st_dev:
        raise PreconditionError(
            f"power loss of {mount_point}: nothing is mounted there, it is its parent's filesystem; "
            "expected a loop mount of this run"
        )
    backing = mounts.backing_file(device)
    if backing is None or folder.resolve() not in backing.resolve().parents:
        raise PreconditionError(
            f"power loss of {mount_point}: backed by {backing or 'no loop device'}; expected a file in {folder}"
        )
