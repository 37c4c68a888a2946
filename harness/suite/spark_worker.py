"""
Spark in a separate process, started while a suite is played, so that it is warm when the runs are checked.

The start takes seconds of processor time; meanwhile a suite leaves a core idle, or mostly waits. In a separate
process Spark does not receive our signals, and it does not outlive us: its standard input ends with this process
(checkers/spark/process.py).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from checkers.spark.options import LOCAL, Folder, SparkOptions
from harness import limits
from harness.cleanup.process import TOKEN_VARIABLE, bearers, end, identity_of
from harness.model import Anomaly, FencepostError, UsageError
from harness.suite.interrupts import INTERRUPTS, LOOK_S

Found = dict[str, list[Anomaly]]
# Runs to check, or where to find some (checkers/spark/process.py).
Request = list[str] | dict[str, list[str]]

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = (sys.executable, "-P", "-m", "checkers.spark.process")
# Spark is up in two seconds; on two cores with five loads beside it took more than two minutes.
START_S_MAX: Final = 300.0
# Another master may have others to serve first; its executors must be started, and packages be sent to them.
OTHER_START_S_MAX: Final = 600.0
_FOLDER: Final = "fencepost-spark"


class SparkWorker:
    """A Spark process, which may be down, starting, or up; `spark_worker` creates it and ends it."""

    def __init__(self, java_home: Path, options: SparkOptions) -> None:
        self._java_home = java_home
        self._options = options
        self._token = secrets.token_hex(6)
        ourselves = identity_of(os.getpid())
        assert ourselves is not None, "we are alive, so /proc must know us"
        self._since = ourselves.start
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._up = False

    def start(self) -> None:
        """Start Spark if it was not started yet; return at once; raise UsageError if its folder cannot be made."""
        self._start()

    def _start(self, *wait: str) -> None:
        if self._process is not None:
            return
        try:
            self._folder = _new_folder()
        except OSError as error:
            raise UsageError(
                f"Spark: no folder can be made in {tempfile.gettempdir()}: {error.strerror}; expected one; "
                "free some space, or set TMPDIR"
            ) from error
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [*PROGRAM, *wait, "--spark", self._options.to_json(), str(self._java_home), str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                TOKEN_VARIABLE: self._token,
                "PYTHONPATH": path,
                "TMPDIR": str(self._folder),
            },
            # Ctrl-C in a terminal must not reach it; we end it.
            process_group=0,
        )

    def check(self, folders: Sequence[Folder]) -> Found:
        """
        Check the runs, after Spark is up. Folders and result are those of checkers.spark.runs.check_runs.

        Raises:
            UsageError: the machine, or the executors of another master, lack something that Spark needs.
            FencepostError: Spark is not up in time, or ended before it answered.
            RuntimeError: the check crashed; the text is its traceback.
            KeyboardInterrupt: at once.
        """
        answer = self._asked([str(each.absolute() if isinstance(each, Path) else each) for each in folders])
        return {run: [Anomaly.from_dict(raw) for raw in anomalies] for run, anomalies in answer["found"].items()}

    def find(self, roots: Sequence[str]) -> dict[str, str | None]:
        """
        Return the URIs of all runs below these, each with the text of its anomalies.json, None if it has none.

        Raises:
            UsageError: as `check`, and if Spark cannot list one of them.
            FencepostError, RuntimeError, KeyboardInterrupt: as `check`.
        """
        runs: dict[str, str | None] = self._asked({"find": list(roots)})["runs"]
        return runs

    def finish(self) -> None:
        """Ask Spark to end, and wait until it has."""
        if self._process is not None:
            self._ask(None)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(2 * limits.PROCESS_END_S_MAX)
        self.end()

    def end(self) -> None:
        """Kill Spark's processes in any state, then delete their files."""
        if self._process is None:
            return
        if self._process.poll() is None:
            # All at once: a process that outlives another would print errors about it.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + 2 * limits.PROCESS_END_S_MAX
        # Python workers are in another process group, and may have been started just now.
        while time.monotonic() < deadline and (left := list(bearers(self._token, self._since))):
            for bearer in left:
                end(bearer)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None, "it was started with pipes"
            with suppress(BrokenPipeError):
                pipe.close()
        assert self._folder is not None, "it was made before the process"
        shutil.rmtree(self._folder, ignore_errors=True)

    def _asked(self, request: Request) -> dict[str, Any]:
        # Spark that nobody started before has a request at once: to warm it up first would be time lost.
        self._start("--wait")
        self._ask(request)
        if not self._up:
            self._await_up()
        return self._answer()

    def _ask(self, request: Request | None) -> None:
        """Send a request; if the process has ended, `_answer` raises."""
        stream = self._stream("stdin")
        with suppress(BrokenPipeError):
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()

    def _await_up(self) -> None:
        stream = self._stream("stdout")
        start_s_max = START_S_MAX if self._options.is_local else OTHER_START_S_MAX
        deadline = time.monotonic() + start_s_max
        while not select.select([stream], [], [], LOOK_S)[0]:
            if time.monotonic() > deadline:
                raise FencepostError(f"Spark: not up after {start_s_max:.0f} s; expected it to be up by then")
        self._up = bool(self._answer()["up"])

    def _answer(self) -> dict[str, Any]:
        """Read the next answer; raise the error that it reports, or FencepostError if there is none."""
        assert self._process is not None, "it was asked"
        line = self._stream("stdout").readline()
        if not line:
            code = self._process.wait()
            raise FencepostError(
                f"Spark: its process ended with exit code {code} before it answered; expected an answer; see its "
                "output above"
            )
        answer: dict[str, Any] = json.loads(line)
        if "usage" in answer:
            raise UsageError(answer["usage"])
        if "crash" in answer:
            raise RuntimeError(f"in Spark's process:\n{answer['crash']}")
        return answer

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] | None = getattr(self._process, name)
        assert stream is not None, "it was started with pipes"
        return stream


@contextmanager
def spark_worker(java_home: Path, options: SparkOptions = LOCAL) -> Iterator[SparkWorker]:
    """
    Yield a Spark worker, which is not started yet, and end it after the block; an error in the block kills it.

    Errors of Spark are raised by `check` only.
    """
    worker = SparkWorker(java_home, options)
    try:
        yield worker
    except BaseException:
        with INTERRUPTS.shielded():
            worker.end()
        raise
    with INTERRUPTS.shielded():
        worker.finish()


def _new_folder() -> Path:
    """Create a folder whose name identifies this process; delete folders whose owner is dead."""
    base, uid = Path(tempfile.gettempdir()), os.geteuid()
    for old in base.glob(f"{_FOLDER}-*"):
        whose = re.fullmatch(rf"{_FOLDER}-(\d+)-(\d+)-\w+", old.name)
        owner = identity_of(int(whose[1])) if whose else None
        dead = whose is not None and (owner is None or owner.start != int(whose[2]))
        if dead and old.lstat().st_uid == uid:
            shutil.rmtree(old, ignore_errors=True)
    ourselves = identity_of(os.getpid())
    assert ourselves is not None, "we are alive, so /proc must know us"
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-{ourselves.pid}-{ourselves.start}-"))
