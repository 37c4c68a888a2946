"""
One Java client as a child of the run, asked and answering in lines over two pipes.

Its standard input is the mark of its ledger's entry; so it has two pipes more. It ends itself once nobody can ask
it any more: when this closes its side, or when the run was killed. One that does not is killed.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Final

from harness import limits
from harness.clients.children import Children
from harness.clients.clock import left
from harness.model import FencepostError, HistoryError, PreconditionError

READY: Final = "ready"
# More than the records of any poll, in Base64.
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_CHUNK: Final = 65_536
_END: Final = b"\n"


class Jvm:
    """
    The process of one client; it starts at once.

    Args:
        name: the client's.
        children: starts it.
        argv: returns its command line with two handles: what it reads, and what it writes.
    """

    def __init__(self, name: str, children: Children, argv: Callable[[int, int], Sequence[str]]) -> None:
        self._name = name
        self._ledger = children.ledger
        self._is_ready = False
        self._told = b""
        theirs_in, self._ask = os.pipe()
        self._listen, theirs_out = os.pipe()
        try:
            self._child = children.start(name, argv(theirs_in, theirs_out), (theirs_in, theirs_out))
        except BaseException:
            self._close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._poll = select.poll()
        self._poll.register(self._listen, select.POLLIN)
        # One that reads nothing must not hold up who asks.
        os.set_blocking(self._ask, False)
        self._room = select.poll()
        self._room.register(self._ask, select.POLLOUT)

    def await_ready(self) -> None:
        """Await what it tells first, if it has not told it yet; raise as `must_hear` does."""
        if self._is_ready:
            return
        words = self.must_hear(time.monotonic() + limits.PROCESS_START_S_MAX)
        if words != [READY]:
            raise PreconditionError(f"client {self._name}: it told {words} first; expected {READY}")
        self._is_ready = True

    def ask(self, *words: str) -> None:
        """Ask something, once it is ready; raise as `must_hear` does."""
        self.await_ready()
        line = " ".join(words).encode() + _END
        deadline = time.monotonic() + limits.CLIENT_OPERATION_S_MAX
        try:
            while line:
                if not self._room.poll(left(deadline) * 1000):
                    raise self._silent("reads nothing; expected it to read a line within its time")
                line = line[os.write(self._ask, line) :]
        except BrokenPipeError as error:
            raise self._ended() from error

    def hear(self, deadline: float) -> list[str] | None:
        """
        Return the words of the next line that it tells, None if it tells none until then.

        Raises:
            PreconditionError: the process has ended by itself, or the line never ends.
            HistoryError: it has ended with its run.
        """
        while _END not in self._told:
            if len(self._told) > LINE_BYTES_MAX:
                raise self._silent(f"tells a line of more than {LINE_BYTES_MAX} bytes; expected its end")
            if not self._poll.poll(left(deadline) * 1000):
                return None
            if not (told := os.read(self._listen, _CHUNK)):
                raise self._ended()
            self._told += told
        line, _, self._told = self._told.partition(_END)
        return line.decode(errors="replace").split(" ")

    def must_hear(self, deadline: float) -> list[str]:
        """Return the words of the next line; raise as `hear` does, or PreconditionError if none comes in time."""
        words = self.hear(deadline)
        if words is None:
            raise self._silent("tells nothing; expected a line within its time")
        return words

    def close(self) -> None:
        """Let it end, and wait for that; what it still does is lost."""
        self._close()
        self._child.wait(limits.PROCESS_END_S_MAX)

    def _close(self) -> None:
        os.close(self._ask)
        os.close(self._listen)

    def _silent(self, what: str) -> FencepostError:
        """Return what a process that is there does not do."""
        return PreconditionError(
            f"client {self._name}: its process, pid {self._child.pid}, {what}; it printed:\n"
            f"{self._child.log_tail()}"
        )

    def _ended(self) -> FencepostError:
        """Return why the process is gone."""
        how = self._child.wait(limits.PROCESS_END_S_MAX)
        if self._ledger.is_closed:
            return HistoryError(f"client {self._name}: taken down with its run")
        return PreconditionError(
            f"client {self._name}: its process ended with {how}; expected it to live; it printed:\n"
            f"{self._child.log_tail()}"
        )
