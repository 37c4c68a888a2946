"""
The dead-man timer: a process beside the agent that heals the machine when agent or harness is gone.

The agent writes a byte to it for each sign of life of the harness, and RELEASE when everything is undone. If
nothing comes for too long, or the pipe ends because the agent has, the guard kills the agent and heals. It has a
session of its own and none of the agent's handles, so that the end of the SSH connection, or of its server, does
not end it.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from harness.cleanup import process
from harness.cleanup.process import Identity
from harness.model import PreconditionError

BEAT: Final = b"."
RELEASE: Final = b"q"
_READ_BYTES: Final = 4096


class Guard:
    """The agent's end of the pipe to its guard."""

    def __init__(self, silence_s: float, heal: Callable[[], None]) -> None:
        """
        Fork the guard; this process must have no other thread yet, and hold no lock that heal needs.

        Args:
            silence_s: After so many seconds without a byte the guard acts.
            heal: Called in the guard, when the agent has ended.
        """
        me = process.identity_of(os.getpid())
        assert me is not None, "this process is alive, so /proc has it"
        theirs, self._handle = os.pipe()
        standing, told = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            # Whatever happens, the copy of the agent that this is must not go on as the agent.
            try:
                os.close(self._handle)
                _detach()
                os.write(told, BEAT)
                os.close(told)
                _stand(theirs, me, silence_s, heal)
            finally:
                os._exit(0)
        os.close(theirs)
        os.close(told)
        # From here on nothing that ends a session ends the guard.
        there = os.read(standing, 1)
        os.close(standing)
        if there != BEAT:
            raise PreconditionError("the guard ended at once; expected it to stand before anything is made")

    def beat(self) -> None:
        """Report that the harness lives; raises BrokenPipeError if the guard is gone."""
        os.write(self._handle, BEAT)

    def release(self) -> None:
        """Let the guard end and heal nothing, because all is undone; return when it has ended."""
        with suppress(BrokenPipeError):
            os.write(self._handle, RELEASE)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _stand(handle: int, agent: Identity, silence_s: float, heal: Callable[[], None]) -> None:
    """Wait until the harness or the agent is gone, then heal; or until the release."""
    os.set_blocking(handle, False)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    while poll.poll(silence_s * 1000):
        data = os.read(handle, _READ_BYTES)
        if RELEASE in data:
            return
        if not data:
            break
    process.end(agent)
    heal()


def _detach() -> None:
    """Leave the agent's session, its signals and its handles."""
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
