"""
Walk the batches of a segment's bytes, whichever format they have, as far as these are sound.

The walk stops where the bytes are no sound batch, because what follows could be anything. It goes on behind a
damaged batch that says itself where the next one begins, if a sound one follows it there, or the file ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from harness.logs.source import Source

# How many damaged batches in a row the walk looks beyond.
_DAMAGED_MAX: Final = 16


class Placed(Protocol):
    """A sound batch: which offsets it has, and how many bytes it takes."""

    @property
    def base_offset(self) -> int:
        """The first offset."""

    @property
    def last_offset(self) -> int:
        """The last offset, inclusive."""

    @property
    def size(self) -> int:
        """In bytes."""


B = TypeVar("B", bound=Placed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """
    Why no sound batch begins at a position that is not the end of the bytes.

    Attributes:
        short: True if the bytes left may be the beginning of a batch that is being written, or space for one.
        damaged: The (first offset, end, bytes) that the header of a whole batch claims whose checksum differs;
            None for anything else.
        goes_on: The walk goes on behind a damaged batch.
    """

    position: int
    text: str
    short: bool
    damaged: tuple[int, int, int] | None = None
    goes_on: bool = False


def walked(source: Source, read: Callable[[Source, int, int], B | Stop], next_offset: int) -> Iterator[B | Stop]:
    """
    Yield what `read` finds at each position, up to the end or to the first position without a sound batch.

    A damaged batch that says where the next one begins is one Stop, and the walk goes on behind it.

    Args:
        read: (source, position, least base offset of the batch) -> the batch there, or why there is none.
        next_offset: The least base offset that the first batch may have.

    Raises:
        OSError: The source cannot be read.
    """
    position = 0
    while position < source.size:
        found = read(source, position, next_offset)
        if isinstance(found, Stop):
            if found.damaged is None or not _goes_on(source, read, found, next_offset):
                yield found
                return
            yield replace(found, goes_on=True)
            _, next_offset, size = found.damaged
            position += size
            continue
        yield found
        # Each batch must begin at or after the furthest end before it, also after a batch that goes back.
        next_offset = max(next_offset, found.last_offset + 1)
        position += found.size


def _goes_on(source: Source, read: Callable[[Source, int, int], B | Stop], stop: Stop, next_offset: int) -> bool:
    """Return True if sound batches follow damaged ones where these say, or if the file ends there."""
    for _ in range(_DAMAGED_MAX):
        if stop.damaged is None or not next_offset <= stop.damaged[0] < stop.damaged[1]:
            return False
        base, next_end, size = stop.damaged
        if stop.position + size == source.size:
            return base == next_offset
        after = read(source, stop.position + size, next_end)
        if not isinstance(after, Stop):
            return after.base_offset == next_end
        if after.damaged is None or after.damaged[0] != next_end:
            return False
        stop, next_offset = after, next_end
    return False
