"""One night at a time on the same results: a second one is refused in one line, and a killed one holds nothing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.model import UsageError

LOCK: Final = "lock"


@contextmanager
def alone(nights: Path) -> Iterator[None]:
    """
    Hold the lock of a folder of nights during the block; the kernel gives it back when the process ends, however.

    Raises:
        UsageError: another process holds it, or the folder cannot be written.
    """
    try:
        nights.mkdir(parents=True, exist_ok=True)
        handle = os.open(nights / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"results folder {nights}: {error.strerror}; expected a folder that can be written; "
            "name another (--results)"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise UsageError(
                f"{nights}: another night is at work there, process {who}; expected one at a time; wait "
                "for its end, or name other results (--results)"
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
