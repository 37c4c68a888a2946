"""
Schedules of one kind: a fault, or what an operator can ask for, again and again, beside a producer at full rate.

Kinds hide each other: a system that loses records whenever a node starts again is mostly seen in the middle of
something else. Such a schedule has its kind, the moves that undo it, records and time, and nothing else.

Source:  Jepsen's nemeses, each of which is also run by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final

from harness.cluster.fault import Fault
from harness.effect import Effect
from harness.random_schedule.profile import Profile
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan

# What such a schedule has beside its kind. A fault that lasts is undone as often as it is injected.
_OFTEN: Final = 6.0
_BESIDE: Final[Mapping[str, float]] = {"produce": 3.0, "pass": 5.0}


def kind_alone(seed: int, profile: Profile, faults: Mapping[str, Fault]) -> str:
    """Return the one kind of faults that a seed's schedule has, "" if it has many."""
    chance = Random(f"alone {seed}")
    if chance.random() >= profile.alone:
        return ""
    weights = {**profile.weights, **profile.weights_of(faults)}
    known = [name for name, fault in faults.items() if weights.get(name) and not fault.heals]
    return chance.choice(known) if known else ""


def with_one_kind(kind: str, faults: Mapping[str, Fault]) -> tuple[list[str], list[float]]:
    """Return the kinds of moves of a schedule with one kind of faults, and the weight of each."""
    effect = faults[kind].effect
    undoes = {name: _OFTEN for name, fault in faults.items() if effect in fault.heals}
    before = {"kill": _OFTEN, "restart": _OFTEN} if effect in (Effect.LOG_CUT, Effect.DISK_LOST) else {}
    weights = {**_BESIDE, **before, **undoes, kind: _OFTEN}
    return list(weights), list(weights.values())


def full_rate(main: Place) -> Clients:
    """Return a producer that sends again as soon as it has an outcome, and a consumer that follows."""
    return Clients(
        producers=(ProducerPlan(name="p1", places=(main,), batch=(1, 5), every_ms=(0, 2)),),
        consumers=(ConsumerPlan(name="c1", places=(main,)),),
    )
