"""Reducers of time: passes and delays become shorter and round, and blind passes become conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import Final

from harness.scenario.condition_types import (
    Acked,
    Checkpoint,
    Condition,
    Controller,
    EpochRises,
    Gone,
    Held,
    InSync,
    Leads,
    LogEnds,
    Registered,
    Truncated,
)
from harness.scenario.file import Scenario
from harness.scenario.offsets import Mark
from harness.scenario.steps import MEANWHILE, Act, Await, Delay, Hold, Inject, Pass, Produce
from harness.search.random_runs import is_written
from harness.search.shrink.candidates import acts_of, replaced

# In milliseconds.
ROUND_MS: Final = tuple(Decimal(digit) * 10**power for power in range(4) for digit in (1, 2, 5))
MS_PER_S: Final = 1000


def shorter_times(scenario: Scenario) -> Iterator[Scenario]:
    """Make a pass or a delay shorter, by round numbers, or at least a whole number of milliseconds."""
    for at, act in enumerate(acts_of(scenario)):
        match act:
            case Pass(ms):
                yield from (replaced(scenario, at, Pass(shorter)) for shorter in rounder(ms))
            case Delay(seconds=seconds):
                for shorter in rounder(seconds * MS_PER_S):
                    yield replaced(scenario, at, replace(act, seconds=_in_seconds(shorter)))


def rounder(ms: Decimal) -> list[Decimal]:
    """Return round times below this one, the shortest first; the next whole numbers, if it is not whole."""
    found = [number for number in ROUND_MS if number < ms]
    whole = ms.to_integral_value()
    if ms != whole:
        found += [
            number for number in (Decimal(int(ms)), Decimal(int(ms) + 1)) if number > 0 and number not in found
        ]
    return found


def _in_seconds(ms: Decimal) -> Decimal:
    return Decimal(f"{ms / MS_PER_S:f}")


def awaiting_instead(scenario: Scenario) -> Iterator[Scenario]:
    """Await a condition in place of a pass, in a written scenario: other machines take other times."""
    if not is_written(scenario):
        return
    acts = acts_of(scenario)
    for at, act in enumerate(acts):
        if isinstance(act, Pass):
            for condition in conditions(scenario, acts[:at]):
                yield replaced(scenario, at, Await(condition))


def conditions(scenario: Scenario, before: list[Act]) -> Iterator[Condition]:
    """Yield conditions that these steps may bring about, the latest step's first."""
    replicas = scenario.replicas
    for act in reversed(before):
        match act:
            case Produce(group=group, acks=acks, outcome=outcome):
                if outcome == MEANWHILE and acks:
                    yield Acked(group)
                yield from (LogEnds(name, Mark("end", group)) for name in replicas)
                yield from (Checkpoint(name, False, Mark("end", group)) for name in replicas)
            case Hold(direction, api, src, dst):
                yield Held(api, src, dst, direction)
            case Inject(_, nodes):
                for name in nodes:
                    yield Leads(name) if name in replicas else Controller(True, name)
                    yield from (Registered(name), Gone(name), Truncated(name), Controller(False, name))
    yield from (Leads(name) for name in replicas)
    yield from (Truncated(name) for name in replicas)
    for size in range(len(replicas), 0, -1):
        yield from (InSync(members) for members in combinations(replicas, size))
    yield EpochRises()
