"""
The history of a run: one op a line, in the operating system's hands before `record` returns.

A killed harness leaves every op that it recorded, and at most one torn line, which reading drops.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.events import Event, Unknown
from harness.events.codec import key_of
from harness.model import HistoryError, Op, OpType, Source

Clock = Callable[[], int]
Listener = Callable[[Op], None]

_log = logging.getLogger(__name__)


class History:
    """
    Append ops to a history file, from any thread, in one order that index, time and file share.

    Shapes:  listeners are called with each Op in index order, by the thread that recorded it and under the
             history's lock: a listener sets a flag or a condition, returns at once, and never records.
    Units:   clock gives nanoseconds and never runs back; an op's time_ns counts from the history's begin.
    Raises:  HistoryError when the file is already there: two runs must not share one history.
    """

    def __init__(self, path: Path, clock: Clock = time.monotonic_ns) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except FileExistsError as error:
            raise HistoryError(
                f"{path}: a history is already there; expected a run's folder of its own"
            ) from error
        self.path = path
        self.listeners: list[Listener] = []
        self._clock = clock
        self._began_ns = clock()
        self._next_index = 0
        self._closed = False
        self._telling = False
        # Reentrant, so that a listener that records is told of its mistake instead of hanging the run.
        self._lock = threading.RLock()

    def keep_time_by(self, clock: Clock) -> None:
        """
        Take the time from this clock, as a simulated run does, which has one of its own.

        Raises:  HistoryError when an op was recorded by another: time would jump.
        """
        if self._next_index:
            raise HistoryError(
                f"{self.path}: {self._next_index} ops have their time by another clock; expected none"
            )
        self._clock, self._began_ns = clock, clock()

    def record(self, process: str, type_: OpType, event: Event) -> Op:
        """
        Write one op that says this event, and tell the listeners; its source and f are the event's.

        Raises:
            HistoryError: the history is closed.
        """
        return self._add(process, type_, event)

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> Op:
        """
        Write one op as it was received from a broker, known event or not, and tell the listeners.

        Args:
            value: JSON data, copied before it is written.

        Raises:
            HistoryError: the history is closed.
            TypeError: value is not JSON data; no index is used up.
        """
        return self._add(process, type_, Unknown(source=source, f=f, value=dict(value or {})))

    def _add(self, process: str, type_: OpType, event: Event) -> Op:
        """Give the op the next index and the time since the history began."""
        with self._lock:
            assert not self._telling, "a listener of the history must not record"
            op = self._make(self._next_index, process, type_, event)
            self._write(op.to_json().encode() + b"\n")
            self._next_index += 1
            self._tell(op)
        return op

    def _make(self, index: int, process: str, type_: OpType, event: Event) -> Op:
        if self._closed:
            source, f = key_of(event)
            raise HistoryError(f"{self.path}: {source} {process} records {f!r} after the history was closed")
        return Op.of(event, index=index, time_ns=self._clock() - self._began_ns, process=process, type=type_)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._file, line) :]

    def _tell(self, op: Op) -> None:
        self._telling = True
        try:
            for listener in tuple(self.listeners):
                listener(op)
        finally:
            self._telling = False


def read_history(path: Path) -> list[Op]:
    """
    Read a history back, without the torn last line that a killed run may leave.

    Shapes:  ops in index order, indexes 0, 1, 2, …
    Raises:  HistoryError, naming file and line, for a line that is no op or whose index does not follow.
    """
    *lines, torn = path.read_bytes().split(b"\n")
    if torn:
        _log.warning("%s: dropped the torn last line, %d bytes without an end", path, len(torn))
    ops: list[Op] = []
    for number, line in enumerate(lines, start=1):
        try:
            op = Op.from_json(line.decode())
        except (HistoryError, UnicodeDecodeError) as error:
            raise HistoryError(f"{path}:{number}: {error}") from error
        if op.index != len(ops):
            raise HistoryError(f"{path}:{number}: index {op.index}; expected {len(ops)}, one more a line")
        ops.append(op)
    return ops
