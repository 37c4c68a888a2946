"""
One Java client as a child of the run, asked and answering in lines over two pipes.

Its standard input is the mark of its ledger's entry; so it has two pipes more. It ends itself once nobody can ask
it any more: when this closes its side, or when the run was killed.
"""

from __future__ import annotations

import os
import select
import time
from typing import Final

from harness import limits
from harness.clients.children import Children
from harness.clients.clock import left
from harness.model import FencepostError, HistoryError, PreconditionError
from targets.kafka_family.clients.java_home import JavaHome

READY: Final = "ready"
_CHUNK: Final = 65_536
_END: Final = b"\n"


class Jvm:
    """
    The process of one client; it starts at once.

    Args:
        name: the client's.
        children: starts it.
        home: what it runs.
    """

    def __init__(self, name: str, children: Children, home: JavaHome) -> None:
        self._name = name
        self._ledger = children.ledger
        self._is_ready = False
        self._told = b""
        theirs_in, self._ask = os.pipe()
        self._listen, theirs_out = os.pipe()
        try:
            self._child = children.start(name, home.argv(theirs_in, theirs_out), (theirs_in, theirs_out))
        except BaseException:
            self._close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._poll = select.poll()
        self._poll.register(self._listen, select.POLLIN)

    def ask(self, *words: str) -> None:
        """Ask something, once it is ready; raise as `hear` does."""
        self._await_ready()
        line = " ".join(words).encode() + _END
        try:
            while line:
                line = line[os.write(self._ask, line) :]
        except BrokenPipeError as error:
            raise self._ended() from error

    def hear(self, deadline: float) -> list[str] | None:
        """
        Return the words of the next line that it tells, None if it tells none until then.

        Raises:
            PreconditionError: the process has ended by itself.
            HistoryError: it has ended with its run.
        """
        while _END not in self._told:
            if not self._poll.poll(left(deadline) * 1000):
                return None
            if not (told := os.read(self._listen, _CHUNK)):
                raise self._ended()
            self._told += told
        line, _, self._told = self._told.partition(_END)
        return line.decode().split(" ")

    def must_hear(self, deadline: float) -> list[str]:
        """Return the words of the next line; raise as `hear` does, or PreconditionError if none comes in time."""
        words = self.hear(deadline)
        if words is None:
            raise PreconditionError(
                f"client {self._name}: its process, pid {self._child.pid}, tells nothing; expected a line within "
                f"its time; it printed:\n{self._child.log_tail()}"
            )
        return words

    def close(self) -> None:
        """Let it end, and wait for that; what it still does is lost."""
        self._close()
        self._child.wait()

    def _await_ready(self) -> None:
        if self._is_ready:
            return
        words = self.must_hear(time.monotonic() + limits.PROCESS_START_S_MAX)
        if words != [READY]:
            raise PreconditionError(f"client {self._name}: it told {words} first; expected {READY}")
        self._is_ready = True

    def _close(self) -> None:
        os.close(self._ask)
        os.close(self._listen)

    def _ended(self) -> FencepostError:
        """Return why the process is gone."""
        how = self._child.wait()
        if self._ledger.is_closed:
            return HistoryError(f"client {self._name}: taken down with its run")
        return PreconditionError(
            f"client {self._name}: its process ended with {how}; expected it to live; it printed:\n"
            f"{self._child.log_tail()}"
        )
