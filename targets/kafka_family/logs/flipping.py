"""
Choose one byte of a node's files to flip, as bit rot would; the host writes it in place.

A byte is chosen from the files as they are read here, which may be a copy (harness/hosts/base.py). Only regular
files below the node's own data directory are opened (harness/beneath.py).
Source:  docs/nemeses.md; harness/bit_rot.py, for which byte.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

from harness.beneath import Folder
from harness.bit_rot import DIGIT_BIT, RECORD_BIT, Flip, Where
from targets.kafka_family.logs.batch import Header
from targets.kafka_family.logs.checkpoint import LEADER_EPOCHS
from targets.kafka_family.logs.files import list_log
from targets.kafka_family.logs.message_set import headers
from targets.kafka_family.logs.source import FileSource

# Behind the last byte of a last record's value is one byte: it has no headers.
_FROM_END: Final = 2
_COUNT_BYTES_MAX: Final = 64


def chosen(folder: Folder, where: Where) -> Flip | None:
    """
    Choose a byte of a partition's files; return None if there is no such file, or no sound batch in one.

    Args:
        folder: The partition's directory.

    Raises:
        OSError: A file cannot be read.
    """
    if where is Where.CHECKPOINT:
        return count_of(folder, LEADER_EPOCHS, below=folder.path.name)
    segments = list(list_log(folder).segments.items())
    among = segments[-1:] if where is Where.ACTIVE else segments[:-1]
    for base, name in reversed(among):
        found = _of_batch(folder, name, base)
        if found is not None:
            return found
    return None


def count_of(folder: Folder, name: str, *, below: str = "") -> Flip | None:
    """
    Choose the first digit of a checkpoint's number of entries, to become a letter; return None if it has none.

    Args:
        below: The folder's own name below the data directory, "" for that directory.

    Raises:
        OSError: The file cannot be read.
    """
    with suppress(FileNotFoundError):
        handle = folder.open(name)
        try:
            version, _, rest = os.pread(handle, _COUNT_BYTES_MAX, 0).partition(b"\n")
            if rest[:1].isdigit() and not rest.startswith(b"0\n"):
                path = f"{below}/{name}" if below else name
                return Flip(**_changed(handle, path, len(version) + 1, DIGIT_BIT))
        finally:
            os.close(handle)
    return None


def _of_batch(folder: Folder, name: str, base: int) -> Flip | None:
    """Choose a byte of the last record of the middle sound batch of a segment."""
    handle = folder.open(name)
    try:
        sound = [each for each in headers(FileSource(handle), next_offset=base) if isinstance(each, Header)]
        if not sound:
            return None
        batch = sound[len(sound) // 2]
        at = batch.position + batch.size - _FROM_END
        where = _changed(handle, f"{folder.path.name}/{name}", at, RECORD_BIT)
        return Flip(**where, base=batch.base_offset, last=batch.last_offset)
    finally:
        os.close(handle)


def _changed(handle: int, path: str, at: int, bit: int) -> dict[str, Any]:
    """Return where a byte is, what it is, and what it is with the bit flipped."""
    (before,) = os.pread(handle, 1, at)
    return {"path": path, "position": at, "before": before, "after": before ^ bit}
