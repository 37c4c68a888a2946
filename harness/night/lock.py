"""One night or other work at a time in a folder: a second one is refused in a line, a killed one holds nothing."""

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
def alone(folder: Path, work: str = "night", option: str = "--results") -> Iterator[None]:
    """
    Hold the lock of a folder during the block; the kernel gives it back when the process ends, however.

    Args:
        folder: is made if it is missing.
        option: names another folder.

    Raises:
        UsageError: another process holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"results folder {folder}: {error.strerror}; expected a folder that can be written; "
            f"name another ({option})"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise UsageError(
                f"{folder}: another {work} is at work there, process {who}; expected one at a time; wait "
                f"for its end, or name another folder ({option})"
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
