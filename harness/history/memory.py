"""A history in memory, for runs of which only the verdict is kept."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

from harness.history.file import Clock, History
from harness.model import Op


class MemoryHistory(History):
    """
    Keeps ops in a list; for one thread.

    Attributes:
        ops: all ops, in index order.
        path: where the history would be; nothing is written there.
    """

    def __init__(self, path: Path, clock: Clock = time.monotonic_ns) -> None:
        """Create an empty history, without a file."""
        self.path = path
        self.listeners = []
        self.ops: list[Op] = []
        self._clock = clock
        self._began_ns = clock()
        self._next_index = 0
        self._closed = False
        self._in_listeners = False
        self._lock = nullcontext()

    def _write(self, op: Op) -> None:
        self.ops.append(op)

    def close(self) -> None:
        """Accept no more ops; safe to call twice."""
        self._closed = True
