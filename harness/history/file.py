"""
The history of a run: one op per line, written to the operating system before `record` returns.

A killed harness leaves every op that it recorded, and at most one torn line, which reading drops.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from harness.events import Event, LineUnreadable
from harness.input_file import at_once
from harness.model import HistoryError, Op, OpType, Source
from harness.shortage import shortage_of

Clock = Callable[[], int]
Listener = Callable[[Op], None]

# Index and time of the op before the first.
NOTHING_YET: Final = (-1, 0)

_log = logging.getLogger(__name__)


class History:
    """
    Appends ops to a history file, from any thread; index, time and file have the same order.

    Args:
        path: the new file.
        clock: returns nanoseconds and never runs backwards; an op's time_ns counts from the history's creation.

    Attributes:
        listeners: called with each Op in index order, by the thread that recorded it and under the history's lock.
            A listener sets a flag or a condition, returns at once, and never records.
        size: the bytes that were written.

    Raises:
        HistoryError: the file exists; two runs must not share one history.
    """

    def __init__(self, path: Path, clock: Clock = time.monotonic_ns) -> None:
        self.path = path
        self.listeners: list[Listener] = []
        self._clock = clock
        self._began_ns = clock()
        self.size = 0
        self._next_index = 0
        self._closed = False
        self._lost: Exception | None = None
        self._in_listeners = False
        # Reentrant, so that a listener that records fails an assertion instead of a deadlock.
        self._lock = threading.RLock()
        self._open()

    def keep_time_by(self, clock: Clock) -> None:
        """
        Use this clock from now on, for a simulated run, which has its own.

        Raises:
            HistoryError: an op was recorded by another clock, so that time would jump.
        """
        if self._next_index:
            raise HistoryError(
                f"{self.path}: {self._next_index} ops have their time by another clock; expected none"
            )
        self._clock, self._began_ns = clock, clock()

    def record(self, process: str, type_: OpType, event: Event) -> Op:
        """
        Write an op of this event, with the event's source and f, and call the listeners.

        Raises:
            HistoryError: the history is closed, or cannot be written any more.
        """
        with self._lock:
            time_ns = self._clock() - self._began_ns
            return self._keep(Op.of(event, index=self._next_index, time_ns=time_ns, process=process, type=type_))

    def record_line(
        self, source: Source, process: str, type_: OpType, f: str, value: Mapping[str, Any] | None = None
    ) -> Op:
        """
        Write an op as it was received from a broker, whether its event is known or not, and call the listeners.

        Args:
            value: JSON data, copied before it is written.

        Raises:
            HistoryError: the history is closed, or cannot be written any more.
            TypeError: value is not JSON data; no index is used.
        """
        about = dict(value or {})
        with self._lock:
            time_ns = self._clock() - self._began_ns
            return self._keep(
                Op(
                    index=self._next_index,
                    time_ns=time_ns,
                    source=source,
                    process=process,
                    type=type_,
                    f=f,
                    value=about,
                )
            )

    def give_up(self, error: Exception) -> None:
        """
        Note that an observation was lost: from now on every `record` raises, so that the run cannot end as whole.

        A thread that observes may lose one without the runner's notice; the runner always records the run's end.
        """
        with self._lock:
            self._lost = self._lost or error

    @property
    def whole(self) -> bool:
        """Whether every observation was recorded so far."""
        return self._lost is None

    def require_whole(self) -> None:
        """Raise HistoryError, with what was lost, if an observation was."""
        if self._lost is not None:
            more = shortage_of(self._lost) or "expected every observation to be recorded"
            raise HistoryError(
                f"{self.path}: lacks what was observed after op {self._next_index - 1}: "
                f"{type(self._lost).__name__}: {self._lost}; {more}"
            ) from self._lost

    def _keep(self, op: Op) -> Op:
        """Write an op, and call the listeners."""
        if self._closed:
            raise HistoryError(
                f"{self.path}: {op.source} {op.process} records {op.f!r} after the history was closed"
            )
        assert not self._in_listeners, "a listener of the history must not record"
        self.require_whole()
        try:
            self._write(op)
        except OSError as error:
            self.give_up(error)
            self.require_whole()
        self._next_index += 1
        self._in_listeners = True
        try:
            for listener in tuple(self.listeners):
                listener(op)
        finally:
            self._in_listeners = False
        return op

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags, 0o644)
        except FileExistsError as error:
            raise HistoryError(
                f"{self.path}: a history is already there; expected a run's folder of its own"
            ) from error

    def _write(self, op: Op) -> None:
        line = op.to_json().encode() + b"\n"
        self.size += len(line)
        while line:
            line = line[os.write(self._file, line) :]

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._shut()

    def _shut(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_history(path: Path) -> list[Op]:
    """Return the ops of a history, in the order of the lines; see `history_ops`."""
    return [*history_ops(path)]


def history_ops(path: Path) -> Iterator[Op]:
    """
    Yield the ops of a history, without the torn last line that a killed run may leave.

    A line that is no op reads as one: `unreadable` of the collector, which makes this run unknown and no other.
    Indexes are returned as they are; checkers/facts/sequence.py judges them.

    Raises:
        OSError: the file is missing, or may not be read.
        HistoryError: it is no regular file: a FIFO could be waited for without end.
    """
    with open(path, "rb", opener=at_once) as lines:
        if not stat.S_ISREG(os.fstat(lines.fileno()).st_mode):
            raise HistoryError(f"{path}: not a regular file; expected a run's history")
        yield from ops_in(lines, str(path))


def ops_in(lines: Iterable[bytes], path: str) -> Iterator[Op]:
    """Yield the ops in the lines of a history; each line but a torn last one ends with a newline."""
    last: Op | None = None
    refused, number, first = 0, 0, ""
    for line in lines:
        if not line.endswith(b"\n"):
            _log.warning("%s: dropped the torn last line, %d bytes without an end", path, len(line))
            break
        number += 1
        last, error = op_in(line[:-1], number, (last.index, last.time_ns) if last else NOTHING_YET)
        if error:
            refused, first = refused + 1, first or f"{path}:{number}: {error}"
        yield last
    if refused:  # one line, however many there are: a file may be something else altogether
        _log.warning("%s; %d of %d lines are no op", first, refused, number)


def op_in(line: bytes, number: int, last: tuple[int, int]) -> tuple[Op, str]:
    """
    Return the op of a line, or the op that stands for it and what is wrong with it.

    Args:
        number: 1 for the history's first line.
        last: index and time of the op before; NOTHING_YET for none.
    """
    try:
        return Op.from_json(line.decode()), ""
    except (HistoryError, UnicodeDecodeError) as error:
        return unreadable(f"line {number}: {error}", last[0] + 1, last[1]), str(error)


def unreadable(error: str, index: int, time_ns: int = 0) -> Op:
    """Return the op that stands for one that could not be read."""
    return Op.of(
        LineUnreadable(error=error), index=index, time_ns=time_ns, process=LineUnreadable.PROCESS, type=OpType.FAIL
    )
