"""
Choose one byte of a node's files to flip, as bit rot would, in any log of segments; the host writes it in place.

A byte is chosen from the files as they are read here, which may be a copy (harness/hosts/base.py). Only regular
files below the node's own data directory are opened (harness/beneath.py).
Source:  docs/nemeses.md; harness/bit_rot.py, for which byte.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from harness.beneath import Folder
from harness.bit_rot import DIGIT_BIT, RECORD_BIT, Flip, Where
from harness.logs.segments import Pieces
from harness.logs.source import FileSource, opened
from harness.logs.walking import Placed, Stop

B = TypeVar("B", bound=Placed)

_COUNT_BYTES_MAX: Final = 64


def flip_of_batch(log: Pieces[B], where: Where, byte: Callable[[B], int]) -> Flip | None:
    """
    Choose a byte of the middle sound batch of the active segment, or of the newest closed one that has batches.

    Args:
        byte: The position of a batch's byte in the file.

    Raises:
        OSError: A file cannot be read.
    """
    listed = list(log.segments.items())
    for base, name in reversed(listed[-1:] if where is Where.ACTIVE else listed[:-1]):
        with opened(log.folder, name) as source:
            # Of each batch only the place is kept: all of them may be larger than memory.
            sound = [
                (byte(each), each.base_offset, each.last_offset)
                for each in log.walk(source, base)
                if not isinstance(each, Stop)
            ]
            if sound:
                at, first, last = sound[len(sound) // 2]
                return Flip(**_changed(source, f"{log.name}/{name}", at, RECORD_BIT), base=first, last=last)
    return None


def flip_of_count(folder: Folder, name: str, *, below: str = "") -> Flip | None:
    """
    Choose the first digit of a checkpoint's number of entries, to become a letter; return None if it has none.

    Args:
        below: The folder's own path below the data directory, "" for that directory.

    Raises:
        OSError: The file cannot be read.
    """
    with suppress(FileNotFoundError), opened(folder, name) as source:
        version, _, rest = source.at(0, _COUNT_BYTES_MAX).partition(b"\n")
        if rest[:1].isdigit() and not rest.startswith(b"0\n"):
            path = f"{below}/{name}" if below else name
            return Flip(**_changed(source, path, len(version) + 1, DIGIT_BIT))
    return None


def _changed(source: FileSource, path: str, at: int, bit: int) -> dict[str, Any]:
    """Return where a byte is, what it is, and what it is with the bit flipped."""
    (before,) = source.at(at, 1)
    return {"path": path, "position": at, "before": before, "after": before ^ bit}
