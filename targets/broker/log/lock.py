"""
The lock of a data directory: two processes would write over each other's records.

It is the lock that Apache Kafka's brokers take, on the same file, so that each keeps out the other. It ends with
its process, even a killed one; the file stays, and its existence means nothing.
Source:  Kafka, LogManager.lockLogDirs.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK_FILE: Final = ".lock"


class DataDirTakenError(OSError):
    """Another process holds the data directory; the text names the directory and the remedy."""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """
    Hold a data directory, created when missing, while the block runs.

    Raises:
        DataDirTakenError: another process holds it.
        OSError: from the disk.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / LOCK_FILE).open("a", encoding="ascii") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # POSIX allows either error
            raise DataDirTakenError(
                f"data_dir {path}: a running broker holds its {LOCK_FILE}; expected an unused directory. "
                "Stop that broker, or configure another data_dir for this one"
            ) from error
        yield
