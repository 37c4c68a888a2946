"""
What one life of a client in a process of its own says, line by line, and what is open when that life ends.

A line is an op as the history writes it, numbered from 0 in each life. A life that was killed may leave one line
torn, as its last; a line that is torn, missing or strange anywhere else is an error of ours, not of a broker.

No op is lost: an invoke is here before its request is sent, and what is open gets its end
(harness/workload/lives.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.clients.wire import END
from harness.events import Event
from harness.model import HistoryError, Op, OpType, Source
from harness.workload.lives import LifeOps


class LifeLog(LifeOps):
    """
    The ops of one life; no IO.

    Args:
        process: of this life, in the history.
    """

    def __init__(self, process: str) -> None:
        LifeOps.__init__(self)
        self._process = process
        self._rest = b""
        self._count = 0

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
        if not killed and (self._rest or self.is_asking):
            raise HistoryError(
                f"{self._process}: its process ended with {self.open} ops open and {len(self._rest)} bytes "
                "of a torn line; expected an outcome of each op, unless it is killed"
            )
        self._rest = b""
        yield from self.cut_off()

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
        self.note(op.type, op.event)
        return op
