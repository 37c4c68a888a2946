"""Search mutants, each in a process of its own: what found it, at which seed, or that nothing did."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.worker import UNCHANGED

ROOT: Final = Path(__file__).resolve().parents[2]
# Far above what 400 seeds take on a busy machine, per seed; a mutant that loops for ever is ended.
SECONDS_PER_SEED_MAX: Final = 1.0
SECONDS_MIN: Final = 120.0
TOLD_CHARACTERS_MAX: Final = 200


class Outcome(StrEnum):
    """What became of a mutant."""

    FOUND = "found"
    SURVIVED = "survived"
    CRASHED = "crashed"
    TOO_LONG = "too long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What the search says of a mutant.

    Attributes:
        seed: the first one with a finding; where it crashed or took too long; None if it survived.
        kinds: the kinds of its anomalies.
        sentence: the first of them in words, or the last line of a crash.
        scenarios: those that do not end as expected, if they were played.
    """

    name: str
    outcome: Outcome
    seed: int | str | None
    kinds: tuple[str, ...]
    sentence: str
    scenarios: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "name": self.name,
            "outcome": self.outcome.value,
            "seed": self.seed,
            "kinds": list(self.kinds),
            "sentence": self.sentence,
            "scenarios": list(self.scenarios),
        }


class Gauntlet:
    """
    Searches mutants, several at a time.

    Attributes:
        seeds: the seeds of each.
        scenarios: whether the scenarios are played too.
        seconds_max: after so long a mutant's process is ended.
    """

    def __init__(self, seeds: range, *, scenarios: bool = False, seconds_max: float | None = None) -> None:
        self.seeds = seeds
        self.scenarios = scenarios
        self.seconds_max = seconds_max or max(SECONDS_MIN, SECONDS_PER_SEED_MAX * len(seeds))
        self._children: set[subprocess.Popen[str]] = set()
        self._ended = False

    def run(self, mutants: Sequence[Mutant], *, jobs: int) -> Iterator[Found]:
        """Yield what is found of each mutant, in the order in which they end; an exception ends the children."""
        with ThreadPoolExecutor(jobs) as pool:
            try:
                waiting: list[Future[Found]] = [pool.submit(self.search, mutant.name) for mutant in mutants]
                for done in as_completed(waiting):
                    yield done.result()
            finally:
                self._ended = True
                for child in tuple(self._children):
                    child.kill()
                pool.shutdown(cancel_futures=True)

    def search(self, name: str = UNCHANGED) -> Found:
        """Search one mutant, or the core as it is, in a process of its own."""
        words = (name, self.seeds.start, len(self.seeds), "yes" if self.scenarios else "no")
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mutants.worker", *map(str, words)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._children.add(child)
        if self._ended:
            child.kill()
        try:
            out, err = child.communicate(timeout=self.seconds_max)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
            told = f"not done after {self.seconds_max:g} s"
            return _broken(name, Outcome.TOO_LONG, out, told)
        finally:
            self._children.discard(child)
        if child.returncode:
            told = (err.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            return _broken(name, Outcome.CRASHED, out, told)
        return found_in(name, out)


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
    )


def _broken(name: str, outcome: Outcome, out: str, told: str) -> Found:
    """Return the outcome of a worker that did not end by itself; a last line may be torn."""
    whole = [line for line in out.splitlines() if line.endswith("}")]
    seed = json.loads(whole[-1]).get("begins") if whole else None
    return Found(name=name, outcome=outcome, seed=seed, kinds=(), sentence=told[:TOLD_CHARACTERS_MAX])
