"""
Virtual time: a heap of planned events, and one source of randomness.

Events are plain tuples, (what, who, ...), of texts and numbers: they can be copied, compared and hashed.
Two events at one time happen in the order in which they were planned.
The simulator reads no other clock and no other source of randomness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final, TypeAlias

NS_PER_MS: Final = 1_000_000
# The world's start in records' timestamps and on wall clocks; any fixed time will do.
EPOCH_MS: Final = 1_700_000_000_000
NS_PER_S: Final = 1_000_000_000

Event: TypeAlias = tuple[Any, ...]


class Clock:
    """The time, the planned events, and the random source. Times are nanoseconds since the world began."""

    def __init__(self, seed: int) -> None:
        self.now_ns = 0
        self.random = Random(seed)
        self._planned: list[tuple[int, int, Event]] = []
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._planned)

    def at(self, at_ns: int, event: Event) -> None:
        """Plan an event; one that is planned for the past happens now."""
        self._numbers += 1
        heappush(self._planned, (max(at_ns, self.now_ns), self._numbers, event))

    def own(self, world_ns: int) -> int:
        """Return what this clock shows at a time of the world: the same, unless it is a node's own."""
        return world_ns

    def after(self, delay_ns: int, event: Event) -> None:
        """Plan an event after a delay."""
        self.at(self.now_ns + delay_ns, event)

    def times(self, chosen: Callable[[Event], bool]) -> set[int]:
        """Return the times for which the chosen events are planned."""
        return {at_ns for at_ns, _, event in self._planned if chosen(event)}

    def replan(self, chosen: Callable[[Event], bool], moved: Mapping[int, int]) -> None:
        """Plan the chosen events for other times, by their old ones; those at one time keep their order."""
        self._planned = [
            (max(moved[at_ns], self.now_ns) if chosen(event) else at_ns, number, event)
            for at_ns, number, event in self._planned
        ]
        heapify(self._planned)

    @property
    def next_ns(self) -> int | None:
        """Return the next event's time, None when nothing is planned."""
        return self._planned[0][0] if self._planned else None

    def pop(self) -> Event | None:
        """Advance to the next event and return it; None when nothing is planned."""
        if not self._planned:
            return None
        self.now_ns, _, event = heappop(self._planned)
        return event

    def advance(self, to_ns: int) -> None:
        """Advance the time without events."""
        assert self.next_ns is None or to_ns <= self.next_ns, "time passes an event that has not happened"
        self.now_ns = max(self.now_ns, to_ns)
