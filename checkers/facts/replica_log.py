"""
One replica's log at a time: which records it holds, as pieces of offsets with the origin of each.

The origin of a record is the index of the op with which a leader appended it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from harness.model import Op

UNKNOWN: Final = -1

# How many ranges one block of `Ranges` has.
_BLOCK: Final = 512

# (first, end, origin): the offsets from first on, end exclusive, hold records of that origin.
Piece: TypeAlias = tuple[int, int, int]
_end_of: Final = itemgetter(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    From this op on, the node's log has records of that origin at the offsets; None if it has no record there.

    Attributes:
        first: the first offset.
        end: the offset after the last one.
        op: an append, a truncation or a recovery. A start, if its disk was new, or if the log was shorter after
            it and no recovery was reported; a leader or follower event, if the log became shorter without any
            reported reason.
        leader: the node that the process followed, "" if none.
    """

    node: str
    first: int
    end: int
    origin: int | None
    op: Op
    leader: str = ""


class ReplicaLog:
    """
    One replica's log during a replay: pieces in the order of offsets, which never overlap.

    Attributes:
        changed_from: the lowest offset at which it has changed since somebody set this.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.pieces: list[Piece] = []
        self.changed_from = 0

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.pieces[-1][1] if self.pieces else 0

    def at(self, offset: int) -> int | None:
        """Return the origin of the record at the offset, None if there is none."""
        found = next(iter(self.slice(offset, offset + 1)), None)
        return None if found is None else found[2]

    def slice(self, first: int, end: int) -> list[Piece]:
        """Return the pieces between the offsets, cut to them."""
        found: list[Piece] = []
        for start, stop, origin in self.pieces_from(first):
            if start >= end:
                break
            found.append((max(start, first), min(stop, end), origin))
        return found

    def pieces_from(self, offset: int) -> Iterator[Piece]:
        """Yield the whole pieces of which something is at or above the offset."""
        return islice(self.pieces, bisect_right(self.pieces, offset, key=_end_of), None)

    def cut(self, to: int) -> list[Piece]:
        """Remove what is at and above the offset; return it."""
        removed = self.slice(to, self.end)
        self.changed_from = min(self.changed_from, to)
        while self.pieces and self.pieces[-1][0] >= to:
            self.pieces.pop()
        if self.pieces and self.pieces[-1][1] > to:
            first, _, origin = self.pieces.pop()
            self.pieces.append((first, to, origin))
        return removed

    def put(self, piece: Piece) -> list[Piece]:
        """Write the piece; return what was there before and above it, which is gone."""
        removed = self.cut(piece[0]) if piece[0] < self.end else []
        if piece[0] < piece[1]:
            self.pieces.append(piece)
            self.changed_from = min(self.changed_from, piece[0])
        return removed

    def follow(self, change: Change) -> None:
        """Hold from now on what the change left at its offsets."""
        if change.origin is None:
            self.cut(change.first)
        else:
            self.put((change.first, change.end, change.origin))

    def lacks(self, piece: Piece) -> list[tuple[int, int]]:
        """Return the [first, end) ranges of the piece at which the log surely lacks records of its origin."""
        first, end, origin = piece
        missing: list[tuple[int, int]] = []
        for start, stop, held in self.slice(first, end):
            if held not in (origin, UNKNOWN):
                continue
            if start > first:
                missing.append((first, start))
            first = stop
        return [*missing, (first, end)] if first < end else missing


class Replay:
    """The replicas' logs as they were at an op, which moves forward through the changes."""

    def __init__(self, changes: Iterable[Change]) -> None:
        """Begin before the first change; the changes are in index order."""
        self.logs: dict[str, ReplicaLog] = {}
        self._changes = iter(changes)
        self._next = next(self._changes, None)

    def to(self, index: int) -> None:
        """Follow all changes up to that index, that op's own among them."""
        while self._next is not None and self._next.op.index <= index:
            self.logs.setdefault(self._next.node, ReplicaLog()).follow(self._next)
            self._next = next(self._changes, None)


class Ranges:
    """
    [first, end) ranges of offsets, in any order, which may overlap.

    A run that loses thousands of records asks for each of them, among hundreds of thousands of ranges. They are
    columns, in blocks: most ranges of a log are near those before and after them, so few blocks have an offset.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Take the ranges, whose places are their numbers from 0 on."""
        self._firsts, self._ends = np.array([*ranges], dtype=np.int64).reshape(-1, 2).T
        starts = np.arange(0, len(self._firsts), _BLOCK)
        self._low = np.minimum.reduceat(self._firsts, starts) if len(starts) else self._firsts
        self._high = np.maximum.reduceat(self._ends, starts) if len(starts) else self._ends

    def at(self, offset: int, first: int = 0, end: int | None = None) -> list[int]:
        """Return the places of those, from place `first` on and before place `end`, that have the offset."""
        end = len(self._firsts) if end is None else end
        blocks = np.flatnonzero((self._low <= offset) & (offset < self._high)) * _BLOCK
        found: list[int] = []
        for block in blocks.tolist():
            start = max(first, block)
            here = slice(start, min(end, block + _BLOCK))
            hits = np.flatnonzero((self._firsts[here] <= offset) & (offset < self._ends[here])) + start
            found += hits.tolist()
        return found
