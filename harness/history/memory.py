"""A history in memory alone, for runs of which only a verdict is kept."""

from __future__ import annotations

import time
from pathlib import Path

from harness.events import Event
from harness.history.file import Clock, History
from harness.model import HistoryError, Op, OpType


class MemoryHistory(History):
    """
    Keep ops in a list, in the one order of their indexes; for one thread.

    Shapes:  ops has them all. path is where the history would be; nothing is written there.
    """

    def __init__(self, path: Path, clock: Clock = time.monotonic_ns) -> None:
        """Begin, without the file of other histories."""
        self.path = path
        self.listeners = []
        self.ops: list[Op] = []
        self._clock = clock
        self._began_ns = clock()
        self._closed = False

    def keep_time_by(self, clock: Clock) -> None:
        """Take the time from this clock; HistoryError when an op was recorded by another."""
        if self.ops:
            raise HistoryError(f"{self.path}: {len(self.ops)} ops have their time by another clock; expected none")
        self._clock, self._began_ns = clock, clock()

    def _add(self, process: str, type_: OpType, event: Event) -> Op:
        op = self._make(len(self.ops), process, type_, event)
        self.ops.append(op)
        for listener in self.listeners:
            listener(op)
        return op

    def close(self) -> None:
        """Take no more; safe to call twice."""
        self._closed = True
