"""
Spark beside a suite that is being played: a process of its own, started early, warm when there is a run to check.

The start takes seconds of a processor, and a suite leaves one idle for as long, or mostly waits. In a process of
its own Spark takes no signal that is ours, and nothing of it outlives us: see checkers/spark/process.py, whose
standard input ends when we do.
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

from harness import limits
from harness.cleanup.process import TOKEN_VARIABLE, end, identity_of, tokens_alive
from harness.model import Anomaly, FencepostError, UsageError
from harness.suite.interrupts import INTERRUPTS, LOOK_S

Found = dict[str, list[Anomaly]]

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = (sys.executable, "-P", "-m", "checkers.spark.process")
# Spark is up in two seconds; a machine with ten other things to do takes many times as long.
START_S_MAX: Final = 120.0
_FOLDER: Final = "fencepost-spark"


class SparkWorker:
    """Spark, down, on its way up, or up; `spark_worker` makes one and ends it."""

    def __init__(self, java_home: Path) -> None:
        self._java_home = java_home
        self._token = secrets.token_hex(6)
        ourselves = identity_of(os.getpid())
        assert ourselves is not None, "we are alive, so /proc must know us"
        self._since = ourselves.start
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._up = False

    def start(self) -> None:
        """Begin to start Spark, if that has not begun; return at once."""
        if self._process is not None:
            return
        self._folder = _new_folder()
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [*PROGRAM, str(self._java_home), str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                TOKEN_VARIABLE: self._token,
                "PYTHONPATH": path,
                "TMPDIR": str(self._folder),
            },
            # Ctrl-C in a terminal is for us, and we end it.
            process_group=0,
        )

    def check(self, parquet_paths: Sequence[Path]) -> Found:
        """
        Check the runs; wait until Spark is up. Paths and result are those of checkers.spark.runs.check_runs.

        Raises:
            UsageError: the machine lacks what Spark needs.
            FencepostError: Spark is not up within START_S_MAX, or ended before it answered.
            RuntimeError: the check crashed; the text is its traceback.
            KeyboardInterrupt: at once.
        """
        self.start()
        self._ask([str(path) for path in parquet_paths])
        if not self._up:
            self._await_up()
        found = self._answer()["found"]
        return {run: [Anomaly.from_dict(raw) for raw in anomalies] for run, anomalies in found.items()}

    def finish(self) -> None:
        """Let Spark end in its own time, and wait until it has."""
        if self._process is not None:
            self._ask(None)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(2 * limits.PROCESS_END_S_MAX)
        self.end()

    def end(self) -> None:
        """End Spark in whatever state it is: its processes at once, then what they wrote for themselves."""
        if self._process is None:
            return
        if self._process.poll() is None:
            # All at once: one that outlives another would report it.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + 2 * limits.PROCESS_END_S_MAX
        # Python workers have a group of their own, and may just have been started.
        while time.monotonic() < deadline and (bearers := list(tokens_alive(self._token, self._since))):
            for bearer in bearers:
                end(bearer)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None, "it was started with pipes"
            with suppress(BrokenPipeError):
                pipe.close()
        assert self._folder is not None, "it was made before the process"
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(self, request: list[str] | None) -> None:
        """Send a request; a process that has ended is found when its answer is read."""
        stream = self._stream("stdin")
        with suppress(BrokenPipeError):
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()

    def _await_up(self) -> None:
        stream = self._stream("stdout")
        deadline = time.monotonic() + START_S_MAX
        while not select.select([stream], [], [], LOOK_S)[0]:
            if time.monotonic() > deadline:
                raise FencepostError(f"Spark: not up after {START_S_MAX:.0f} s; expected it to be within that")
        self._up = bool(self._answer()["up"])

    def _answer(self) -> dict[str, Any]:
        """Read the next answer; raise what it says, or that there is none."""
        assert self._process is not None, "it was asked"
        line = self._stream("stdout").readline()
        if not line:
            code = self._process.wait()
            raise FencepostError(
                f"Spark: its process ended with exit code {code} before it answered; expected an answer; what it "
                "said stands above"
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
def spark_worker(java_home: Path) -> Iterator[SparkWorker]:
    """
    Have a Spark that starts when the block says so, while it does other things; an error in it ends Spark at once.

    What is wrong with Spark is raised where it is asked to check, and nowhere else.
    """
    worker = SparkWorker(java_home)
    try:
        yield worker
    except BaseException:
        with INTERRUPTS.shielded():
            worker.end()
        raise
    with INTERRUPTS.shielded():
        worker.finish()


def _new_folder() -> Path:
    """Make a folder whose name says whose it is; delete those whose owner is dead."""
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
