"""
Flip one byte of a real node's files, as bit rot would: it is read, changed and written back in place.

Nothing else of the file is touched, so a broker that has it open goes on, and reads the changed byte next time.
Only regular files below the node's own data directory are opened (harness/beneath.py).
Source:  docs/nemeses.md; harness/bit_rot.py, for which byte.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

from harness.beneath import Folder
from harness.bit_rot import DIGIT_BIT, RECORD_BIT, Flip, Where
from harness.logdir.batch import Header
from harness.logdir.checkpoint import LEADER_EPOCHS
from harness.logdir.files import list_log
from harness.logdir.message_set import headers
from harness.logdir.source import FileSource

# Behind the last byte of a last record's value is one byte: it has no headers.
_FROM_END: Final = 2
_COUNT_BYTES_MAX: Final = 64


def flip(folder: Folder, where: Where) -> Flip | None:
    """
    Flip a byte of a partition's files; return None if there is no such file, or no sound batch in one.

    Args:
        folder: The partition's directory.

    Raises:
        OSError: A file cannot be read or written.
    """
    if where is Where.CHECKPOINT:
        return flip_count(folder, LEADER_EPOCHS, below=folder.path.name)
    segments = list(list_log(folder).segments.items())
    chosen = segments[-1:] if where is Where.ACTIVE else segments[:-1]
    for base, name in reversed(chosen):
        found = _flip_batch(folder, name, base)
        if found is not None:
            return found
    return None


def flip_count(folder: Folder, name: str, *, below: str = "") -> Flip | None:
    """
    Make a letter of the first digit of a checkpoint's number of entries; return None if it has none.

    Args:
        below: The folder's own name below the data directory, "" for that directory.

    Raises:
        OSError: The file cannot be read or written.
    """
    with suppress(FileNotFoundError):
        handle = folder.open(name, os.O_RDWR)
        try:
            version, _, rest = os.pread(handle, _COUNT_BYTES_MAX, 0).partition(b"\n")
            if rest[:1].isdigit() and not rest.startswith(b"0\n"):
                path = f"{below}/{name}" if below else name
                return Flip(**_changed(handle, path, len(version) + 1, DIGIT_BIT))
        finally:
            os.close(handle)
    return None


def _flip_batch(folder: Folder, name: str, base: int) -> Flip | None:
    """Flip a byte of the last record of the middle sound batch of a segment."""
    handle = folder.open(name, os.O_RDWR)
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
    """Flip a bit of the byte at a position, and return where it is and what it was."""
    (before,) = os.pread(handle, 1, at)
    os.pwrite(handle, bytes((before ^ bit,)), at)
    return {"path": path, "position": at, "before": before, "after": before ^ bit}
