"""
The lock of a data directory: two processes would write over each other's records.

It is the lock that Apache Kafka's brokers take, on the same file, so that each keeps out the other. It ends with
its process, even a killed one; the file stays, and its existence means nothing.
Source:  Kafka, LogManager.lockLogDirs.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from targets.broker.log.beneath import make_data_directory, open_file

LOCK_FILE: Final = ".lock"


class DataDirTakenError(OSError):
    """Another process holds the data directory; the text names the directory and the remedy."""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """
    Hold a data directory, created when missing, while the block runs.

    Raises:
        DataDirTakenError: another process holds it.
        RefusedError: something else has the name of the directory or of its lock.
        OSError: from the disk.
    """
    lock = open_file(make_data_directory(path) / LOCK_FILE, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # POSIX allows either error
            raise DataDirTakenError(
                f"data_dir {path}: a running broker holds its {LOCK_FILE}; expected an unused directory. "
                "Stop that broker, or configure another data_dir for this one"
            ) from error
        yield
    finally:
        os.close(lock)
