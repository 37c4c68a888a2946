"""One node's process on this machine: in its own session, signalled by identity, awaited with a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness import limits
from harness.beneath import Folder, RefusedError
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import (
    TOKEN_VARIABLE,
    Identity,
    end,
    ended_within,
    identity_of,
    is_alive,
    is_stopped,
    remove_shared,
    send,
    until,
)
from harness.cluster.last_words import end_of
from harness.model import PreconditionError, UsageError

# How long a process is watched after its start: with a wrong command line it ends at once.
FIRST_LOOK_S: Final = 0.1
LOG_TAIL_CHARACTERS: Final = 2000


class NodeProcess:
    """
    A node's process over its lives: started, paused, killed, started again; its output goes to one log file.

    Raises:
        PreconditionError: A process that should exist does not, or a signal does not have its effect.
    """

    def __init__(self, *, name: str, ledger: Ledger, log: Path) -> None:
        """Start nothing yet; `start` does."""
        self.name = name
        self._ledger = ledger
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None
        self._entry = 0

    def start(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        """Start it; raise UsageError, with the end of its output, if it cannot run or ends at once."""
        if self.alive():
            raise PreconditionError(f"start {self.name}: it runs already; expected it to be down")
        self._collect()
        with self._ledger.making():
            self._spawn(argv, env=env, cwd=cwd, pass_fds=pass_fds)
        assert self._identity is not None, "it was spawned"
        if ended_within(self._identity, FIRST_LOOK_S):
            code = self._collect()
            raise UsageError(
                f"start {self.name}: ended at once with {code}; expected it to run; it said:\n{self.log_tail()}"
            )

    def _spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, pass_fds: Sequence[int]) -> None:
        """Note the process in the ledger, fork it, and note its pid."""
        with os.fdopen(open_log(self.name, self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as output:
            unborn = self._ledger.note_process()
            self._entry = unborn.number
            with unborn.mark.open("rb") as mark:
                try:
                    self._child = subprocess.Popen(
                        argv,
                        stdin=mark,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        cwd=cwd,
                        env={**env, TOKEN_VARIABLE: unborn.token},
                        pass_fds=pass_fds,
                    )
                except OSError as error:
                    self._ledger.done(self._entry)
                    raise UsageError(
                        f"start {self.name}: {argv[0]}: {error.strerror}; expected a program that runs"
                    ) from error
        # A child stays in /proc until its parent waits for it, even if it has ended.
        self._identity = identity_of(self._child.pid)
        assert self._identity is not None, "only this process waits for its child"
        self._ledger.add(self._entry, pid=self._identity.pid, start=self._identity.start)

    def alive(self) -> bool:
        """Return True if the process exists; a paused one does."""
        return self._identity is not None and is_alive(self._identity)

    def kill(self) -> str:
        """SIGKILL it; return when it has ended."""
        identity = self._running("kill")
        if not end(identity):
            raise PreconditionError(
                f"kill {self.name}: pid {identity.pid} outlived SIGKILL by {limits.PROCESS_END_S_MAX} s"
            )
        self._collect()
        return f"pid {identity.pid} ended by SIGKILL"

    def stop(self) -> str:
        """SIGTERM it; return when it has ended."""
        identity = self._running("stop")
        send(identity, signal.SIGTERM)
        if not ended_within(identity, limits.PROCESS_END_S_MAX):
            raise PreconditionError(
                f"stop {self.name}: pid {identity.pid} outlived SIGTERM by {limits.PROCESS_END_S_MAX} s"
            )
        return f"pid {identity.pid} ended by SIGTERM with {self._collect()}"

    def pause(self) -> str:
        """SIGSTOP it; return when all its threads are stopped."""
        identity = self._running("pause")
        send(identity, signal.SIGSTOP)
        if not until(lambda: is_stopped(identity), limits.PROCESS_END_S_MAX):
            raise PreconditionError(f"pause {self.name}: pid {identity.pid} runs on after SIGSTOP")
        return f"pid {identity.pid} stopped"

    def paused(self) -> bool:
        """Return True if the kernel has stopped all its threads."""
        return self._identity is not None and is_stopped(self._identity)

    def resume(self) -> str:
        """SIGCONT it; return when it runs again."""
        identity = self._running("resume")
        if not is_stopped(identity):
            raise PreconditionError(
                f"resume {self.name}: pid {identity.pid} is not stopped; expected a pause before"
            )
        send(identity, signal.SIGCONT)
        if not until(lambda: not is_stopped(identity), limits.PROCESS_END_S_MAX):
            raise PreconditionError(f"resume {self.name}: pid {identity.pid} is still stopped after SIGCONT")
        return f"pid {identity.pid} runs"

    def ask_clocks(self) -> Callable[[], str]:
        """SIGQUIT it, at which it prints its clocks; return what says what it has printed since."""
        identity, before = self._running("ask for the clocks of"), self._log.stat().st_size
        send(identity, signal.SIGQUIT)
        return lambda: read_log(self.name, self._log, before)

    @property
    def pid(self) -> int:
        """That of the process that was started last, 0 before."""
        return self._identity.pid if self._identity is not None else 0

    def wait(self, within_s: float | None = None) -> str:
        """
        Wait for the end of the process; return how it ended: `signal 9`, `exit code 0`.

        Args:
            within_s: when it is killed if it still lives, in seconds; None: it is waited for.
        """
        if within_s is not None and self._identity is not None and not ended_within(self._identity, within_s):
            end(self._identity)
        return self._collect()

    def log_text(self) -> str:
        """Return everything that it has printed so far, over all its lives."""
        return read_log(self.name, self._log)

    def log_tail(self) -> str:
        """Return the end of its output, and above it what says why it ended."""
        return end_of(self.log_text(), LOG_TAIL_CHARACTERS)

    def forget(self) -> None:
        """Wait for the process after the ledger has killed it, so that no zombie remains."""
        if self._child is not None and not self.alive():
            self._child.wait()

    def _running(self, what: str) -> Identity:
        if self._identity is None or not is_alive(self._identity):
            raise PreconditionError(f"{what} {self.name}: no process of it runs; expected one")
        return self._identity

    def _collect(self) -> str:
        """Wait for an ended child and close its ledger entry; return how it ended."""
        if self._child is None:
            return "nothing"
        code = self._child.wait()
        remove_shared(self._child.pid)
        self._ledger.done(self._entry)
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def open_log(node: str, path: Path, flags: int) -> int:
    """
    Open a node's log file, which lies in a folder of the node's: nothing but a regular file.

    Raises:
        PreconditionError: A link or another file is in the place of the log or of its folder.
    """
    try:
        with Folder.no_link(path.parent) as folder:
            return folder.open(path.name, flags)
    except RefusedError as error:
        raise PreconditionError(f"log of {node}: {path}: {error}") from error


def read_log(node: str, path: Path, start: int = 0) -> str:
    """Return a node's log file from that byte on, "" while there is none; raises as open_log."""
    try:
        handle = open_log(node, path, os.O_RDONLY)
    except FileNotFoundError:
        return ""
    with os.fdopen(handle, encoding="utf-8", errors="replace") as file:
        file.seek(start)
        return file.read()


def child_environment(env: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the environment of a node's process: ours, with the project's root on PYTHONPATH, then `env`."""
    path = os.pathsep.join(part for part in (str(root), os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **env}
