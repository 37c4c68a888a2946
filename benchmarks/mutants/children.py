"""The gauntlet's child processes: each is asked one thing, and ends with the gauntlet, however that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.model import FencepostError

ROOT: Final = Path(__file__).resolve().parents[2]
# A process that waits for ever takes no processor time: after so many times the limit by the clock it is ended.
WAITS: Final = 20
# By these somebody ended a process, or the kernel when memory was short: they say nothing of what it was asked.
FROM_OUTSIDE: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class WorkerLostError(FencepostError):
    """A child was ended from outside, so that nothing is known of what it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    How a child ended.

    Attributes:
        lines: what it said, each line whole.
        late: why it was ended, "" if it ended by itself.
        error: its last words if it failed, else "".
    """

    lines: tuple[dict[str, Any], ...]
    late: str = ""
    error: str = ""


class Children:
    """The children of this process; several threads may ask."""

    def __init__(self) -> None:
        self._all: set[subprocess.Popen[str]] = set()
        self._ended = False

    def ask(self, what: str, question: Mapping[str, Any], seconds_max: float) -> Answer:
        """
        Ask a new child, and return its answer.

        Args:
            what: names the question in an error.
            seconds_max: the child's processor time.

        Raises:
            WorkerLostError: the child was ended from outside.
        """
        child, lifeline = _start(seconds_max)
        self._all.add(child)
        if self._ended:
            child.kill()
        try:
            _tell(lifeline, question)
            out, err = child.communicate(timeout=WAITS * seconds_max)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
            return Answer(lines=_whole(out), late=f"not done after {WAITS * seconds_max:g} s")
        finally:
            os.close(lifeline)
            self._all.discard(child)
        if child.returncode == -signal.SIGXCPU:
            return Answer(lines=_whole(out), late=f"not done after {seconds_max:g} s of processor time")
        if -child.returncode in FROM_OUTSIDE:
            raise WorkerLostError(
                f"{what}: its process was ended by signal {-child.returncode}; expected its own end; "
                "if memory is short, take fewer --jobs"
            )
        told = (err.strip().splitlines() or [f"exit code {child.returncode}"])[-1] if child.returncode else ""
        return Answer(lines=_whole(out), error=told)

    def end(self) -> None:
        """End all children, and those to come."""
        self._ended = True
        for child in tuple(self._all):
            child.kill()


def _start(seconds_max: float) -> tuple[subprocess.Popen[str], int]:
    """Start a child, and return it with the pipe that it reads: it ends when that closes."""
    reads, lifeline = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mutants.worker", str(-int(-seconds_max // 1))],
            cwd=ROOT,
            stdin=reads,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for the gauntlet, which then ends its children
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(reads)
    return child, lifeline


def _tell(lifeline: int, question: Mapping[str, Any]) -> None:
    """Tell a child what it is asked; one that has ended already is reported by its exit code."""
    view = memoryview(f"{json.dumps(question)}\n".encode())
    with suppress(BrokenPipeError):
        while view:
            view = view[os.write(lifeline, view) :]


def _whole(out: str) -> tuple[dict[str, Any], ...]:
    """Return what a child said; the last line of one that was ended may be torn."""
    return tuple(json.loads(line) for line in out.splitlines() if line.endswith("}"))
