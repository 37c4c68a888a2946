"""Whether the ops of a history follow each other: indexes rise by one from 0, and time does not fall."""

from __future__ import annotations

from typing import Final

# The first breaks say what is wrong; a history with thousands of them needs no more.
NAMED_MAX: Final = 3


class Breaks:
    """
    The ops of a history so far, in the order in which they were written.

    Attributes:
        count: the number of ops.
        skips: the first breaks of the indexes: the last index (-1 before the first op), and the one that followed.
        falls: the first breaks of the times: the op's index, the last time and the one that followed.
    """

    def __init__(self) -> None:
        self.count = 0
        self.skips: list[tuple[int, int]] = []
        self.falls: list[tuple[int, int, int]] = []
        self._index = -1
        self._time_ns = 0

    def add(self, index: int, time_ns: int) -> None:
        """Take the next op into account."""
        if index != self._index + 1 and len(self.skips) < NAMED_MAX:
            self.skips.append((self._index, index))
        if time_ns < self._time_ns and self.count and len(self.falls) < NAMED_MAX:
            self.falls.append((index, self._time_ns, time_ns))
        self.count += 1
        self._index, self._time_ns = index, time_ns
