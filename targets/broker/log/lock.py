"""
One process at a time has a data directory: two would write over each other's records.

Rules:   the lock is the one that Apache Kafka's brokers take, on the same file, so that neither opens what the
         other has. It ends with its process, however that ends; the file stays, and says nothing by itself.
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
    """Another process has the data directory; the text says which directory, and what to do."""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """
    Hold a data directory, made when it is missing, as long as the block runs.

    Raises:  DataDirTakenError when another process has it; OSError as the disk gives it.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / LOCK_FILE).open("a", encoding="ascii") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # POSIX leaves open which of the two
            raise DataDirTakenError(
                f"data_dir {path}: another broker that runs has its {LOCK_FILE}; expected a directory that nobody "
                "uses. Stop that broker, or give this one a data_dir of its own"
            ) from error
        yield
