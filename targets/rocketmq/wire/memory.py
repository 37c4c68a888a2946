"""
What the replication of one run has carried: where in the commit log the records of each queue end.

Frames name bytes of a log that all topics share; rules of links name offsets of a queue. A position means the
offset after the last record before it, as far as that record was seen on any link.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

# Beyond so many records of a queue the oldest are forgotten: rules name what is new.
_RECORDS_MAX: Final = 50_000
_QUEUES_MAX: Final = 1000


class Memory:
    """The records that were seen, of each queue."""

    def __init__(self) -> None:
        # (topic, queue) -> the bytes after which each record ends, in order; and the offset after each record.
        self._ends: dict[tuple[str, int], list[int]] = {}
        self._offsets: dict[tuple[str, int], list[int]] = {}

    def note(self, topic: str, queue: int, *, end: int, after: int) -> None:
        """Remember a record: the byte after it, and the offset after it."""
        if (topic, queue) not in self._ends and len(self._ends) >= _QUEUES_MAX:
            return
        ends = self._ends.setdefault((topic, queue), [])
        offsets = self._offsets.setdefault((topic, queue), [])
        index = bisect_left(ends, end)
        if index < len(ends) and ends[index] == end:
            offsets[index] = after
            return
        ends.insert(index, end)
        offsets.insert(index, after)
        if len(ends) > _RECORDS_MAX:
            del ends[0], offsets[0]

    def offsets_at(self, position: int) -> tuple[tuple[str, int], ...]:
        """Return (topic, offset) of each queue for a log that ends at this byte."""
        found = []
        for place, ends in self._ends.items():
            index = bisect_right(ends, position)
            found.append((place[0], self._offsets[place][index - 1] if index else 0))
        return tuple(found)
