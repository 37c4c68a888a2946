"""
Have the tables of a history made by a process beside it, while the run goes (harness/tables/follow.py).

The process is started once the history is so large that it will have tables; a small run has none. It is in a
ledger, and ends when this process does. Whatever it does, no run fails by it: missing tables are made from
the lines when they are needed.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import TOKEN_VARIABLE, identity_of, until
from harness.history.file import History
from harness.model import FencepostError, Op
from harness.tables.manifest import LINES_MAX, partial_folder

PROGRAM: Final = (sys.executable, "-P", "-m", "harness.tables.follow")
ROOT: Final = Path(__file__).resolve().parents[2]
_SAID_CHARACTERS: Final = 500

_log = logging.getLogger(__name__)


class Following:
    """
    Follows a history; its block ends the process, and removes what is half.

    Args:
        history: before its first op.
        cancelled: returns True if nothing is to be waited for any more.
    """

    def __init__(self, history: History, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._history = history
        self._cancelled = cancelled
        self._starting: threading.Thread | None = None
        self._follower: _Follower | None = None
        history.listeners.append(self._look)

    def finish(self) -> None:
        """Wait until the tables of the closed history are there; log why if they will not be."""
        if self._starting is None:
            return
        self._starting.join()
        if self._follower is not None:
            problem = self._follower.finish(self._history.size, self._cancelled)
            if problem and not self._cancelled():
                _log.warning("%s: has no tables yet: %s; they are made when it is checked", self._path, problem)

    @property
    def _path(self) -> Path:
        return self._history.path

    def _look(self, _op: Op) -> None:
        if self._history.size > LINES_MAX:
            self._history.listeners.remove(self._look)
            # In a thread, because whoever recorded the op must go on.
            self._starting = threading.Thread(target=self._start, name=f"follow {self._path}", daemon=True)
            self._starting.start()

    def _start(self) -> None:
        try:
            self._follower = _Follower(self._path.absolute())
        except (OSError, FencepostError) as error:
            _log.warning("%s: is not followed: %s; its tables are made when it is checked", self._path, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._starting is not None:
            self._starting.join()
        if self._follower is not None:
            self._follower.end()


class _Follower:
    """The process."""

    def __init__(self, history: Path) -> None:
        self._ledger = Ledger.open(history.parent)
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        control, self._control = os.pipe()
        try:
            self._ledger.note("directory", path=str(partial_folder(history)))
            self._process = self._spawn(history, control)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(control)

    def _spawn(self, history: Path, control: int) -> subprocess.Popen[bytes]:
        """Note the process in the ledger, fork it, and note its pid."""
        with self._ledger.making():
            unborn = self._ledger.note_process()
            with unborn.mark.open("rb") as mark:
                process = subprocess.Popen(
                    [*PROGRAM, str(history), str(control)],
                    stdin=mark,
                    stdout=self._said,
                    stderr=subprocess.STDOUT,
                    pass_fds=(control,),
                    # Ctrl-C in a terminal must not reach it; we end it.
                    process_group=0,
                    env={
                        **os.environ,
                        TOKEN_VARIABLE: unborn.token,
                        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
                    },
                )
            identity = identity_of(process.pid)
            assert identity is not None, "only this process waits for its child"
            self._ledger.add(unborn.number, pid=identity.pid, start=identity.start)
            return process

    def finish(self, size: int, cancelled: Callable[[], bool]) -> str:
        """Say how large the history is, and wait; return "" if the tables are there, else why they are not."""
        with suppress(BrokenPipeError):  # it has ended, and said why
            os.write(self._control, b"%d\n" % size)
        process = self._process
        if not until(lambda: process.poll() is not None or cancelled(), limits.TABLES_END_S_MAX):
            return f"not made {limits.TABLES_END_S_MAX:.0f} s after the run"
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip()
        if process.returncode == 0:
            if said:
                _log.warning("%s", said)
            return ""
        return (said.splitlines() or [""])[-1][:_SAID_CHARACTERS] or f"its process ended with {process.returncode}"

    def end(self) -> None:
        """Kill the process if it still runs, and remove what is half."""
        self._close()
        self._process.wait()

    def _close(self) -> None:
        for problem in self._ledger.close():
            _log.warning("%s", problem)
        os.close(self._control)
        self._said.close()
