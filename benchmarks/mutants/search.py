"""Search mutants, each in a process of its own: what found it, at which seed, or that nothing did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.hints import in_order
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.worker import UNCHANGED
from harness.model import FencepostError

ROOT: Final = Path(__file__).resolve().parents[2]
# Processor time, so that what is found does not depend on what else the machine does. Far above what 400 seeds
# take; a mutant that loops for ever is ended.
SECONDS_PER_SEED_MAX: Final = 1.0
SECONDS_MIN: Final = 120.0
# A process that waits for ever takes no processor time: after so many times the limit by the clock it is ended.
WAITS: Final = 20
TOLD_CHARACTERS_MAX: Final = 200
# By these somebody ended a mutant's process, or the kernel when memory was short: they say nothing of the mutant.
FROM_OUTSIDE: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class WorkerLostError(FencepostError):
    """A mutant's process was ended from outside, so that nothing is known of the mutant."""


class Gauntlet:
    """
    Searches mutants, several at a time.

    Attributes:
        seeds: the seeds of each.
        hints: by name of a mutant, the seed that is tried first.
        scenarios: whether the scenarios are played too.
        seconds_max: after so much processor time a mutant's process is ended.
        playing: the mutants that are searched now.
    """

    def __init__(
        self,
        seeds: range,
        *,
        hints: Mapping[str, int] | None = None,
        scenarios: bool = False,
        seconds_max: float | None = None,
    ) -> None:
        self.seeds = seeds
        self.hints = hints or {}
        self.scenarios = scenarios
        self.seconds_max = seconds_max or max(SECONDS_MIN, SECONDS_PER_SEED_MAX * len(seeds))
        self.playing: dict[str, None] = {}
        self._children: set[subprocess.Popen[str]] = set()
        self._ended = False

    def expected_seeds(self, name: str) -> int:
        """Return how many seeds a mutant takes if its hint is right, or if it survives."""
        return 1 if self.hints.get(name) in self.seeds else len(self.seeds)

    def run(self, mutants: Sequence[Mutant], *, jobs: int) -> Iterator[Found]:
        """
        Yield what is found of each mutant, in the order in which they end; an exception ends the children.

        Those that a hint is known of begin, as they end at once.

        Raises:
            WorkerLostError: a child was ended from outside.
        """
        waiting = sorted(mutants, key=lambda mutant: self.expected_seeds(mutant.name))
        with ThreadPoolExecutor(jobs) as pool:
            try:
                futures: list[Future[Found]] = [pool.submit(self.search, mutant.name) for mutant in waiting]
                for done in as_completed(futures):
                    yield done.result()
            finally:
                self._ended = True
                for child in tuple(self._children):
                    child.kill()
                pool.shutdown(cancel_futures=True)

    def search(self, name: str = UNCHANGED) -> Found:
        """
        Search one mutant, or the core as it is, in a process of its own.

        Raises:
            WorkerLostError: the process was ended from outside.
        """
        child, lifeline = _start(self.seconds_max)
        self._children.add(child)
        self.playing[name] = None
        if self._ended:
            child.kill()
        try:
            _tell(lifeline, name, in_order(self.seeds, self.hints.get(name)), self.scenarios)
            out, err = child.communicate(timeout=WAITS * self.seconds_max)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
            return _broken(name, Outcome.TOO_LONG, out, f"not done after {WAITS * self.seconds_max:g} s")
        finally:
            os.close(lifeline)
            self._children.discard(child)
            self.playing.pop(name, None)
        if child.returncode == -signal.SIGXCPU:
            told = f"not done after {self.seconds_max:g} s of processor time"
            return replace(_broken(name, Outcome.TOO_LONG, out, told), cpu_s=self.seconds_max)
        if -child.returncode in FROM_OUTSIDE:
            raise WorkerLostError(
                f"mutant {name}: its process was ended by signal {-child.returncode}; expected its own end; "
                "if memory is short, take fewer --jobs"
            )
        if child.returncode:
            told = (err.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            return _broken(name, Outcome.CRASHED, out, told)
        return found_in(name, out)


def _start(seconds_max: float) -> tuple[subprocess.Popen[str], int]:
    """Start a worker, and return it with the pipe that it reads: it ends when that closes."""
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


def _tell(lifeline: int, name: str, seeds: Sequence[int], scenarios: bool) -> None:
    """Tell a worker what to search; one that has ended already is reported by its exit code."""
    view = memoryview(f"{json.dumps({'name': name, 'seeds': seeds, 'scenarios': scenarios})}\n".encode())
    with suppress(BrokenPipeError):
        while view:
            view = view[os.write(lifeline, view) :]


def found_in(name: str, out: str) -> Found:
    """Read what a worker printed at its end."""
    last = json.loads(out.splitlines()[-1])
    return Found(
        name=name,
        outcome=Outcome.SURVIVED if last["seed"] is None else Outcome.FOUND,
        seed=last["seed"],
        kinds=tuple(last["kinds"]),
        sentence=last["sentence"][:TOLD_CHARACTERS_MAX],
        scenarios=tuple(last["scenarios"]),
        played=_seeds_begun(_whole(out)),
        cpu_s=last["cpu_s"],
    )


def _broken(name: str, outcome: Outcome, out: str, told: str) -> Found:
    """Return the outcome of a worker that did not end by itself."""
    lines = _whole(out)
    return Found(
        name=name,
        outcome=outcome,
        seed=lines[-1].get("begins") if lines else None,
        kinds=(),
        sentence=told[:TOLD_CHARACTERS_MAX],
        played=_seeds_begun(lines),
    )


def _whole(out: str) -> list[dict[str, Any]]:
    """Return the lines of a worker; the last one may be torn."""
    return [json.loads(line) for line in out.splitlines() if line.endswith("}")]


def _seeds_begun(lines: Sequence[Mapping[str, Any]]) -> int:
    return sum(isinstance(line.get("begins"), int) for line in lines)
