"""
What one life of a client in a process of its own says, line by line, and what is open when that life ends.

A line is an op as the history writes it, numbered from 0 in each life. A life that was killed may leave one line
torn, as its last; a line that is torn, missing or strange anywhere else is an error of ours, not of a broker.

Where it ends, what it had begun has no outcome: a produce is `info`, since it may be appended even later, and a
poll is `fail`, since it moves no position. So no op is lost: an invoke is here before its request is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from harness.events import Event, Poll, Produce
from harness.model import HistoryError, Op, OpType, Source
from harness.workload.plan import Place
from workloads.clients.wire import END

KILLED: Final = "its process was killed"
# What an invoke and its completion have in common.
_Asked: TypeAlias = tuple[object, ...]


class LifeLog:
    """
    The ops of one life; no IO.

    Args:
        process: of this life, in the history.

    Attributes:
        acknowledged: how many records of a producer were acknowledged, or polls of a consumer brought some.
        positions: up to where a consumer has recorded what it read, partition by partition.
    """

    def __init__(self, process: str) -> None:
        self.acknowledged = 0
        self.positions: dict[Place, int] = {}
        self._process = process
        self._rest = b""
        self._count = 0
        self._open: dict[_Asked, Produce | Poll] = {}

    @property
    def is_asking(self) -> bool:
        """Whether it has begun something that has not ended."""
        return bool(self._open)

    def take(self, data: bytes) -> Iterator[Op]:
        """
        Yield the ops in what came, each once its line has come whole.

        Raises:
            HistoryError: a line is none of this life's, or one before it is missing.
        """
        *lines, self._rest = (self._rest + data).split(END)
        for line in lines:
            yield self._op(line)

    def end(self, *, killed: bool) -> Iterator[tuple[OpType, Event]]:
        """
        Yield how each op ends that the life has begun and not ended.

        Raises:
            HistoryError: it was not killed, and left something open or a line torn.
        """
        if not killed and (self._rest or self._open):
            raise HistoryError(
                f"{self._process}: its process ended with {len(self._open)} ops open and {len(self._rest)} bytes "
                "of a torn line; expected an outcome of each op, unless it is killed"
            )
        self._rest = b""
        for event in self._open.values():
            if isinstance(event, Produce):
                yield OpType.INFO, replace(event, digest="", error=KILLED)
            else:
                yield OpType.FAIL, replace(event, error=KILLED)
        self._open.clear()

    def _op(self, line: bytes) -> Op:
        try:
            op = Op.from_json(line.decode())
        except UnicodeDecodeError as error:
            raise HistoryError(f"{self._process}: line {line[:120]!r}; expected UTF-8") from error
        about = (op.index, op.process, op.source)
        if about != (self._count, self._process, Source.CLIENT):
            raise HistoryError(
                f"{self._process}: line {line[:120]!r}; expected op {self._count} of this process, a client's"
            )
        self._count += 1
        match op.event:
            case Produce() as sent:
                self._note(op, (Produce, *sent.asked), sent)
            case Poll() as poll:
                place = Place(poll.topic, poll.partition)
                self._note(op, (Poll, place), poll)
                self.positions[place] = end_of(poll)
        return op

    def _note(self, op: Op, asked: _Asked, event: Produce | Poll) -> None:
        if op.type is OpType.INVOKE:
            self._open[asked] = event
        else:
            self._open.pop(asked, None)
            self.acknowledged += op.type is OpType.OK and (isinstance(event, Produce) or bool(event.records))


def end_of(poll: Poll) -> int:
    """Return the offset up to which a poll, or its outcome, says that its consumer has read."""
    return poll.records[-1][0] + 1 if poll.records else poll.position
