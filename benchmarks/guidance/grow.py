"""Grow a random schedule: a child has its parent's steps, some moved, repeated, left out or from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Final, TypeAlias

from harness.scenario.file import Scenario
from harness.scenario.steps import Act, Pass, Produce
from harness.search.shrink.candidates import acts_of, with_acts

# Of one child.
CHANGES_MAX: Final = 4
RUN_MAX: Final = 6

Change: TypeAlias = Callable[[list[Act], list[Act], Random], None]


def grown(parent: Scenario, other: Scenario, random: Random) -> Scenario:
    """Return a child; steps of `other`, whose cluster has the same nodes and partitions, come in too."""
    acts = acts_of(parent)
    more: list[Act] = [act for act in acts_of(other) if not isinstance(act, Produce)]
    for _ in range(random.randint(1, CHANGES_MAX)):
        random.choice(_CHANGES)(acts, more, random)
    return with_acts(parent, acts)


def _leave_out(acts: list[Act], _: list[Act], random: Random) -> None:
    at, count = _run(acts, random)
    del acts[at : at + count]


def _repeat(acts: list[Act], _: list[Act], random: Random) -> None:
    at, count = _run(acts, random)
    again = [act for act in acts[at : at + count] if not isinstance(act, Produce)]
    to = random.randint(0, len(acts))
    acts[to:to] = again


def _move(acts: list[Act], _: list[Act], random: Random) -> None:
    at, count = _run(acts, random)
    moved = acts[at : at + count]
    del acts[at : at + count]
    to = random.randint(0, len(acts))
    acts[to:to] = moved


def _take(acts: list[Act], more: list[Act], random: Random) -> None:
    at, count = _run(more, random)
    to = random.randint(0, len(acts))
    acts[to:to] = more[at : at + count]


def _retime(acts: list[Act], _: list[Act], random: Random) -> None:
    passes = [at for at, act in enumerate(acts) if isinstance(act, Pass)]
    if passes:
        at = random.choice(passes)
        act = acts[at]
        assert isinstance(act, Pass), "it was chosen as one"
        factor = Decimal(random.choice(("0.25", "0.5", "2", "4")))
        acts[at] = replace(act, ms=round(act.ms * factor, 1))


_CHANGES: Final[tuple[Change, ...]] = (_leave_out, _repeat, _move, _take, _retime)


def _run(acts: list[Act], random: Random) -> tuple[int, int]:
    """Return where a run of steps begins, and its length."""
    return random.randrange(max(1, len(acts))), random.randint(1, RUN_MAX)
