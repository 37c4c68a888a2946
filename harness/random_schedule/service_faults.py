"""
Adds faults of services to a random schedule: one process is killed, frozen, parted or loses power, and returns.

Drawn only for a system whose metadata are held by a service that nodes reach by links of its own, and that runs
never share. Every process of its services may be hit; where one of them can be missed, half of the schedules have
several.

They have a random source of their own, so that all other steps of a seed are the same with them and without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from harness.cluster.aims import SERVICE
from harness.cluster.fault import Fault
from harness.random_schedule.profile import ALL
from harness.scenario.file import Scenario, Step
from harness.scenario.steps import Act, Inject
from harness.scenario.text import first_step_line
from harness.target.services import Service

# How often each comes, relative to the others.
WEIGHTS: Final[Mapping[str, float]] = {"kill": 3.0, "pause": 2.0, "partition-isolate": 2.0, "power-loss": 1.0}
# How often one follows a step: each schedule draws its rate.
RATES: Final = (0.0, 0.0, 0.03, 0.06, 0.12)
# How often it is undone by the schedule, and after how many steps at most; else when the cluster is made whole.
UNDONE_SHARE: Final = 0.8
UNDONE_AFTER_MAX: Final = 6
SEVERAL_SHARE: Final = 0.5


def counts_of(seed: int, services: Sequence[Service]) -> Mapping[str, int]:
    """Return the processes of each service that a seed's run has for itself; none if no fault may hit them."""
    if not any(each.governs_by_links for each in services):
        return {}
    chance = Random(f"services {seed}")
    several = chance.random() < SEVERAL_SHARE
    return {each.name: each.several if several else 1 for each in services}


def with_service_faults(
    scenario: Scenario,
    seed: int,
    services: Sequence[Service],
    faults: Mapping[str, Fault],
    nemeses: Collection[str] = (ALL,),
) -> Scenario:
    """
    Return a drawn schedule with faults of services among its steps, each after the first one.

    Args:
        services: the target's.
        faults: the table of faults; of those of WEIGHTS only what it has for services is drawn.
        nemeses: those that were chosen; of these faults only what they name, all for "all".
    """
    counts = counts_of(seed, services)
    if not counts:
        return scenario
    undoes = {name: _undoing(fault, faults) for name, fault in faults.items() if fault.of_services}
    able = [name for name in WEIGHTS if undoes.get(name) and (ALL in nemeses or name in nemeses)]
    acts = _inserted(Random(f"service faults {seed}"), [step.act for step in scenario.steps], able, undoes)
    first = first_step_line(len(scenario.further), scenario.clients, len(counts))
    steps = tuple(Step(line=line, act=act) for line, act in enumerate(acts, start=first))
    return replace(scenario, services=counts, steps=steps)


def _undoing(fault: Fault, faults: Mapping[str, Fault]) -> str:
    """Return the fault that undoes another one; "" for none."""
    return next((each.name for each in faults.values() if fault.effect in each.heals and each.of_services), "")


def _inserted(chance: Random, steps: Sequence[Act], able: Sequence[str], undoes: Mapping[str, str]) -> list[Act]:
    rate = chance.choice(RATES) if able else 0.0
    due: dict[int, list[Act]] = {}
    found: list[Act] = []
    for turn, act in enumerate(steps):
        found += [act, *due.pop(turn, ())]
        if chance.random() >= rate:
            continue
        name = chance.choices(able, [WEIGHTS[each] for each in able])[0]
        found.append(Inject(name, (SERVICE,)))
        if chance.random() < UNDONE_SHARE:
            after = turn + chance.randint(1, UNDONE_AFTER_MAX)
            due.setdefault(after, []).append(Inject(undoes[name], (SERVICE,)))
    return found
