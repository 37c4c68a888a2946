"""
What a night plays, unit by unit, in order: a function of its plan, its seed, its length and the known seeds.

What the simulator plays is counted in seeds, and what real processes play in seconds. So a night that was killed
and resumed plays the same seeds in the simulator as one that nobody disturbed.

Canaries come first, since nothing else counts without them; then the seeds that ever failed; then rounds of all
plays, so that a night that ends early has seen every host.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

from harness.night.known import Known
from harness.night.plan import DRAWN, Canary, Plan, Play
from harness.random_schedule.profile import ALL
from harness.registry import pick
from harness.search.random_runs import RandomRuns
from harness.suite.scenario_files import files_for
from targets import VIRTUAL_HOST

# A round of all plays, and the most seeds of a unit in the simulator: what a kill can cost.
ROUND_S: Final = 1800.0
ROUNDS_MAX: Final = 48
SLICE_SEEDS: Final = 250
# Schedules of one partition are played so many times as fast.
NARROW_FASTER: Final = 2.0
# What a run on real processes is reckoned to take where it is not given seconds.
REAL_RUN_S: Final = 8.0


# Role and name of a line, which has a unit in each round.
LineKey: TypeAlias = tuple[str, str]


class Role(StrEnum):
    """Why a unit is played."""

    CANARY = "canary"
    KNOWN = "known"
    PLAY = "play"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """
    A piece of a night, which is played as a whole, and again from where it was if the night is killed in it.

    Attributes:
        number: its place in the night, from 1.
        line: what it is a part of: host, target and clients, as printed.
        runs: each of these is played; one alone is played with seed after seed.
        first: the first seed.
        seeds: how many are played; 0 for as many as there is time for.
        seconds: what it is given, or on the simulator reckoned to take.
    """

    number: int
    role: Role
    line: str
    runs: tuple[RandomRuns, ...]
    first: int
    seeds: int
    seconds: float
    jobs: int = 1
    known: tuple[Known, ...] = ()

    @property
    def key(self) -> LineKey:
        """The line that it is a part of."""
        return self.role.value, self.line

    @property
    def host(self) -> str:
        """Where its runs are played."""
        return self.runs[0].host

    @property
    def target(self) -> str:
        """Its target, as printed."""
        return self.runs[0].name

    @property
    def simulated(self) -> bool:
        """Whether it is counted and not timed."""
        return self.host == VIRTUAL_HOST

    @property
    def name(self) -> str:
        """The name of its folders."""
        words = f"{self.number:03d} {self.role} {self.line}"
        return re.sub(r"[^A-Za-z0-9._+=-]+", "-", words)

    def run(self, place: int) -> tuple[RandomRuns, int]:
        """Return the runs and the seed that are played at this place, from 0."""
        if self.known:
            return self.runs[place], self.known[place].seed
        if len(self.runs) > 1:
            return self.runs[place], self.first
        return self.runs[0], self.first + place


def schedule_of(
    plan: Plan, known: Sequence[Known], *, seed: int, seconds: float, folder: Path, power_tier: str | None
) -> tuple[Unit, ...]:
    """
    Return the units of a night in the order in which they are played.

    Args:
        plan: what is played, on the hosts of this night.
        known: the seeds that failed before, and that are played again.
        seed: the night's seed; every unit has seeds of its own from there on.
        seconds: how long the night lasts.
        folder: where the schedules of known seeds are.
        power_tier: how nodes lose their power, None for the best that the machine has.
    """
    drawn = [
        *_canaries(plan, power_tier),
        *_known(plan, known, folder, power_tier),
        *_rounds(plan, seconds, power_tier),
    ]
    units, first = [], seed
    for number, (role, line, runs, seeds, given, jobs, entries) in enumerate(drawn, start=1):
        unit = Unit(
            number=number,
            role=role,
            line=line,
            runs=runs,
            first=first,
            seeds=seeds,
            seconds=given,
            jobs=jobs,
            known=entries,
        )
        units.append(unit)
        first += seeds or 1000 + int(given)  # no run takes less than a second
    return tuple(units)


def digest_of(units: Sequence[Unit]) -> str:
    """Return a text that differs if two schedules do, wherever their results are."""
    told = [
        (unit.name, unit.first, unit.seeds, unit.seconds, unit.jobs, [each.name for each in unit.known])
        for unit in units
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


# Role, line, runs, seeds, seconds, jobs, known seeds.
_Drawn = tuple[Role, str, tuple[RandomRuns, ...], int, float, int, tuple[Known, ...]]


def _canaries(plan: Plan, power_tier: str | None) -> Iterator[_Drawn]:
    for canary in plan.canaries:
        for host in canary.hosts:
            for target, variant in canary.targets:
                yield _canary(
                    canary, plan, host, RandomRuns(target=target, variant=variant, host=host), power_tier
                )


def _canary(canary: Canary, plan: Plan, host: str, runs: RandomRuns, power_tier: str | None) -> _Drawn:
    if canary.scenarios:
        each = tuple(_written(runs, name, power_tier) for name in canary.scenarios)
        line = f"{host} {runs.name} {' '.join(canary.scenarios)}"
        return Role.CANARY, line, each, len(each), 0.0 if host == VIRTUAL_HOST else REAL_RUN_S * len(each), 1, ()
    drawn = RandomRuns(
        target=runs.target, variant=runs.variant, host=host, narrow=host == VIRTUAL_HOST, power_tier=power_tier
    )
    reckoned = canary.seeds / _rate(plan, drawn) if host == VIRTUAL_HOST else REAL_RUN_S * canary.seeds
    return Role.CANARY, f"{host} {runs.name}", (drawn,), canary.seeds, reckoned, 1, ()


def _written(runs: RandomRuns, scenario: str, power_tier: str | None) -> RandomRuns:
    path = pick("scenario", files_for(runs.target, (scenario,)), scenario)
    return RandomRuns(
        target=runs.target, variant=runs.variant, host=runs.host, schedule=path, power_tier=power_tier
    )


def _known(plan: Plan, known: Sequence[Known], folder: Path, power_tier: str | None) -> Iterator[_Drawn]:
    """Yield a unit for each host and target, since they share services."""

    def key(each: Known) -> tuple[int, str, str]:
        return plan.hosts.index(each.host), each.target, each.variant

    for _, group in groupby(sorted(known, key=key), key=key):
        entries = tuple(group)
        tier = None if entries[0].host == VIRTUAL_HOST else power_tier
        runs = tuple(each.runs(folder, tier) for each in entries)
        line = f"{runs[0].host} {runs[0].name} known"
        rate = _rate(plan, runs[0]) if runs[0].host == VIRTUAL_HOST else 1 / REAL_RUN_S
        yield Role.KNOWN, line, runs, len(runs), len(runs) / rate, 1, entries


def _rounds(plan: Plan, seconds: float, power_tier: str | None) -> Iterator[_Drawn]:
    """Yield what is played in each round: of every play, its part of the time."""
    rounds = min(max(1, round(seconds / ROUND_S)), ROUNDS_MAX)
    shares = sum(play.share for play in plan.plays)
    for _ in range(rounds):
        for play in plan.plays:
            lines = list(_lines(play, power_tier))
            each_s = seconds * play.share / shares / len(lines) / rounds
            for line, runs in lines:
                if runs.host != VIRTUAL_HOST:
                    yield Role.PLAY, line, (runs,), 0, each_s, play.jobs, ()
                    continue
                left = max(1, round(each_s * _rate(plan, runs)))
                while left > 0:
                    seeds = min(left, SLICE_SEEDS)
                    yield Role.PLAY, line, (runs,), seeds, seeds / _rate(plan, runs), 1, ()
                    left -= seeds


def _lines(play: Play, power_tier: str | None) -> Iterator[tuple[str, RandomRuns]]:
    for host in play.hosts:
        for target, variant in play.targets:
            for workload in play.workloads:
                runs = RandomRuns(
                    target=target,
                    variant=variant,
                    host=host,
                    nemeses=play.nemeses,
                    workload="" if workload == DRAWN else workload,
                    narrow=play.narrow,
                    seconds=float(play.chaos) if play.chaos else None,
                    power_tier=None if host == VIRTUAL_HOST else power_tier,
                )
                words = [host, runs.name, *([] if workload == DRAWN else [workload])]
                words += ["narrow"] if play.narrow else []
                words += [f"{play.chaos} s of chaos"] if play.chaos else []
                words += [] if ALL in play.nemeses else [",".join(play.nemeses)]
                yield " ".join(words), runs


def _rate(plan: Plan, runs: RandomRuns) -> float:
    """Return how many seeds a second the simulator is reckoned to play."""
    return plan.seeds_a_minute / 60 * (NARROW_FASTER if runs.narrow else 1.0)
