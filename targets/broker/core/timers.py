"""The timers of a broker: one time for each key, and the earliest of all without a search."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

TimerKey: TypeAlias = tuple[Any, ...]

NEVER: Final = -1
# Of entries that are void; with more, and more than half of all, the heap is made anew.
_VOID_MAX: Final = 64


@dataclass(slots=True)
class Timers:
    """
    Times in ns by key.

    The heap also holds entries of timers that were moved or dropped since; they are passed over.
    """

    _at: dict[TimerKey, int] = field(default_factory=dict)
    _heap: list[tuple[int, int, TimerKey]] = field(default_factory=list)
    _next: int = 0

    def __iter__(self) -> Iterator[TimerKey]:
        return iter(list(self._at))

    def times(self) -> Iterator[tuple[TimerKey, int]]:
        """Yield each timer with its time, in no order."""
        return iter(list(self._at.items()))

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: TimerKey, at_ns: int) -> None:
        """Set a timer, or move it."""
        self._at[key] = at_ns
        self._next += 1
        heapq.heappush(self._heap, (at_ns, self._next, key))
        if len(self._heap) > 2 * len(self._at) + _VOID_MAX:
            self._heap = [(at, number, key) for number, (key, at) in enumerate(self._at.items())]
            heapq.heapify(self._heap)
            self._next = len(self._heap)

    def drop(self, key: TimerKey) -> bool:
        """Remove a timer; return False if there was none."""
        return self._at.pop(key, None) is not None

    def earliest(self) -> int:
        """Return the earliest time, NEVER if there is no timer."""
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def due(self, now_ns: int) -> list[TimerKey]:
        """
        Return the timers whose time has come, the earliest first, and equal ones in the order of their texts.

        The caller drops each of them before the next look at `earliest`.
        """
        found: dict[TimerKey, int] = {}
        while (at := self.earliest()) != NEVER and at <= now_ns:
            found[heapq.heappop(self._heap)[2]] = at
        return sorted(found, key=lambda key: (found[key], str(key)))
