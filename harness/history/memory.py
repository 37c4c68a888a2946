"""A history in memory, for runs of which only the verdict is kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.events import Event
from harness.history.file import Clock, History
from harness.model import HistoryError, Op, OpType, Source


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
        self._closed = False

    def keep_time_by(self, clock: Clock) -> None:
        """Use this clock from now on; raise HistoryError if an op was recorded by another one."""
        if self.ops:
            raise HistoryError(f"{self.path}: {len(self.ops)} ops have their time by another clock; expected none")
        self._clock, self._began_ns = clock, clock()

    def _add(self, process: str, type_: OpType, event: Event) -> Op:
        return self._keep(self._make(len(self.ops), process, type_, event))

    def _keep(self, op: Op) -> Op:
        self.ops.append(op)
        for listener in self.listeners:
            listener(op)
        return op

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> Op:
        """Keep an op as it was received from a broker; its event is decoded only where a rule asks for it."""
        if self._closed:
            raise HistoryError(f"{self.path}: {source} {process} records {f!r} after the history was closed")
        op = Op(
            index=len(self.ops),
            time_ns=self._clock() - self._began_ns,
            source=source,
            process=process,
            type=type_,
            f=f,
            value=dict(value or {}),
        )
        return self._keep(op)

    def close(self) -> None:
        """Accept no more ops; safe to call twice."""
        self._closed = True
