"""
A search: many seeds of one variant in the simulator, side by side in processes, told in the order of seeds.

Rules:   what a seed shows depends on nothing but the seed and the variant: not on how many jobs there are.
         What was searched is counted: faults that were tried and that bit, elections, acknowledged records.
"""

from __future__ import annotations

import shlex
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from harness.chance.profile import ALL, DEFAULT, REAL, profile_of
from harness.cli.trials import Trial, TrialSpec, run_trial
from harness.model import Kind, Verdict
from harness.registry import load
from harness.target import Target
from harness.variant import Variant
from targets import TARGETS

# Our own, which is meant where no target is named.
BROKER: Final = "broker"
# Seeds that a process takes at a time: few, so that a search ends soon once it shall.
BATCH_SEEDS: Final = 10
# Batches for each process that are on their way, so that none waits for the next.
AHEAD: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    What is searched, in words that another process can take.

    Shapes:  variant and changes as on a command line; nemeses are names of harness/chance/profile.py;
             real: it is for real processes, whose schedules are drawn as it suits them.
    """

    target: str
    variant: str
    changes: tuple[str, ...] = ()
    nemeses: tuple[str, ...] = (ALL,)
    real: bool = False

    def spec(self) -> TrialSpec:
        """Give what each trial is of; UsageError where there is no such target, protocol or rule."""
        target: Target = load("target", TARGETS, self.target, "TARGET")
        variant = Variant.parse(self.variant, "option --protocol")
        rules = target.rules(variant.protocol, (*variant.changes, *self.changes))
        profile = profile_of(self.nemeses, REAL if self.real else DEFAULT)
        return TrialSpec(target=target, variant=variant, rules=rules, profile=profile)

    def command(self, seed: int, *, host: str, power_tier: str | None = None, schedule: Path | None = None) -> str:
        """Give the command that plays a seed alone, on a host."""
        ours = self.target == BROKER
        words = ["fencepost", "run", "--host", host]
        words += ["--protocol", self.variant] if ours else ["--target", f"{self.target}:{self.variant}"]
        words += [word for change in self.changes for word in ("--rule", change)]
        words += [] if ALL in self.nemeses else ["--nemesis", ",".join(self.nemeses)]
        words += [] if power_tier is None else ["--power-tier", power_tier]
        words += ["--seed", str(seed)]
        words += [] if schedule is None else ["--schedule", str(schedule)]
        return shlex.join(words)


@dataclass(slots=True)
class Tally:
    """
    What a search has come to.

    Shapes:  verdicts, kinds and oracles count seeds; asked and bit count faults; found are the trials that show
             something. Units: seconds are processor time of all jobs together, as long as each has a core.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    kinds: Counter[Kind] = field(default_factory=Counter)
    oracles: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    bit: Counter[str] = field(default_factory=Counter)
    found: list[Trial] = field(default_factory=list)
    seeds: int = 0
    elections: int = 0
    acked: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    seconds: float = 0.0

    def take(self, trial: Trial) -> None:
        """Count a trial."""
        self.seeds += 1
        self.verdicts[trial.verdict] += 1
        self.kinds.update({anomaly.kind for anomaly in trial.anomalies})
        self.oracles.update(violation.rule.value for violation in trial.violations)
        self.asked.update(trial.asked)
        self.bit.update(trial.bit)
        self.elections += trial.elections
        self.acked += trial.acked
        self.steps += trial.steps
        self.virtual_s += trial.virtual_s
        self.seconds += trial.seconds
        if trial.found:
            self.found.append(trial)

    @property
    def verdict(self) -> Verdict:
        """The most severe of what was found; unknown where most seeds prove nothing, else valid."""
        worst = Verdict.merge(trial.verdict for trial in self.found)
        unknown = 2 * self.verdicts[Verdict.UNKNOWN] >= self.seeds
        return Verdict.merge([worst, Verdict.UNKNOWN if unknown else Verdict.VALID])

    @property
    def seeds_per_second(self) -> float:
        """Seeds per second and core."""
        return self.seeds / self.seconds if self.seconds else 0.0


def search(order: Order, seeds: range, *, jobs: int, stop: Callable[[Trial], bool]) -> Iterator[Trial]:
    """Try the seeds in order, until stop says that it is enough; the last trial given is that one."""
    for trial in _alone(order, seeds) if jobs == 1 else _together(order, seeds, jobs):
        yield trial
        if stop(trial):
            return


def _alone(order: Order, seeds: Sequence[int]) -> Iterator[Trial]:
    spec = order.spec()
    return (run_trial(spec, seed) for seed in seeds)


def _together(order: Order, seeds: range, jobs: int) -> Iterator[Trial]:
    """Several processes, of which each was started anew: a fork would take our threads' locks with it."""
    batches = (seeds[at : at + BATCH_SEEDS] for at in range(0, len(seeds), BATCH_SEEDS))
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(order,))
    waiting: deque[Future[list[Trial]]] = deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(_try, batch))
            if len(waiting) >= AHEAD * jobs:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_SPECS: Final[list[TrialSpec]] = []


def _begin(order: Order) -> None:
    """In a process of its own: whoever started it is told of Ctrl-C, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _SPECS[:] = [order.spec()]


def _try(seeds: Sequence[int]) -> list[Trial]:
    return [run_trial(_SPECS[0], seed) for seed in seeds]
