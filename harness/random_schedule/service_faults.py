"""
Adds faults of services to a random schedule: one process is killed, frozen, parted or loses power, and returns; a
node is cut off from one of them, or what it says to others under a name of its own is held.

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
from harness.cluster.fault import Fault, undoing
from harness.random_schedule.profile import ALL
from harness.scenario.file import Scenario, Step
from harness.scenario.steps import Act, Cut, Heal, Hold, Inject, Release
from harness.scenario.text import first_line
from harness.target.services import Service, governed_by_links
from harness.target.target import Target
from harness.target.wire import ANY

# How often each comes, relative to the others.
WEIGHTS: Final[Mapping[str, float]] = {"kill": 3.0, "pause": 2.0, "partition-isolate": 2.0, "power-loss": 1.0}
LINK_WEIGHTS: Final[Mapping[str, float]] = {"cut": 2.0, "hold": 2.0}
# How often one follows a step: each schedule draws its rate.
RATES: Final = (0.0, 0.0, 0.03, 0.06, 0.12)
# How often it is undone by the schedule, and after how many steps at most; else when the cluster is made whole.
UNDONE_SHARE: Final = 0.8
UNDONE_AFTER_MAX: Final = 6
SEVERAL_SHARE: Final = 0.5


def counts_of(seed: int, services: Sequence[Service]) -> Mapping[str, int]:
    """Return the processes of each service that a seed's run has for itself; none if no fault may hit them."""
    if not governed_by_links(services):
        return {}
    chance = Random(f"services {seed}")
    several = chance.random() < SEVERAL_SHARE
    return {each.name: each.several if several else 1 for each in services}


def with_service_faults(
    scenario: Scenario,
    seed: int,
    target: Target,
    faults: Mapping[str, Fault],
    nemeses: Collection[str] = (ALL,),
) -> Scenario:
    """
    Return a drawn schedule with faults of services among its steps, each after the first one.

    Args:
        target: whose services, and whose messages with names of its own.
        faults: the table of faults; of those of WEIGHTS only what it has for services is drawn.
        nemeses: those that were chosen; of these faults only what they name, all for "all".
    """
    counts = counts_of(seed, target.services)
    if not counts:
        return scenario
    chance = Random(f"service faults {seed}")
    messages = () if target.wire is None else sorted(target.wire.messages)
    processes = [name for each in target.services for name in each.names(counts[each.name])]
    drawing = _Drawing(chance, faults, scenario.nodes, processes, messages)
    chosen = [name for name in drawing.kinds if ALL in nemeses or name in nemeses]
    acts = drawing.among([step.act for step in scenario.steps], chosen)
    found = replace(scenario, services=counts)
    steps = (Step(line=line, act=act) for line, act in enumerate(acts, start=first_line(found)))
    return replace(found, steps=tuple(steps))


class _Drawing:
    """Draws what comes among the steps of one schedule."""

    def __init__(
        self,
        chance: Random,
        faults: Mapping[str, Fault],
        nodes: Sequence[str],
        processes: Sequence[str],
        messages: Sequence[str],
    ) -> None:
        self._chance = chance
        self._nodes = nodes
        self._processes = processes
        self._messages = messages
        self._undoes = {
            name: undoing(faults, faults[name]) for name in WEIGHTS if name in faults and faults[name].of_services
        }

    @property
    def kinds(self) -> Mapping[str, float]:
        """What can be drawn, each with how often it comes."""
        able = {name: weight for name, weight in WEIGHTS.items() if self._undoes.get(name)}
        return able | {name: weight for name, weight in LINK_WEIGHTS.items() if name != "hold" or self._messages}

    def among(self, steps: Sequence[Act], kinds: Sequence[str]) -> list[Act]:
        """Return the steps with some of these kinds among them, none before the first."""
        chance = self._chance
        rate = chance.choice(RATES) if kinds else 0.0
        due: dict[int, list[Act]] = {}
        found: list[Act] = []
        for turn, act in enumerate(steps):
            found += [act, *due.pop(turn, ())]
            if chance.random() >= rate:
                continue
            kind = chance.choices(kinds, [self.kinds[each] for each in kinds])[0]
            does, undoes = self._pair(kind)
            found.append(does)
            if chance.random() < UNDONE_SHARE:
                due.setdefault(turn + chance.randint(1, UNDONE_AFTER_MAX), []).append(undoes)
        return found

    def _pair(self, kind: str) -> tuple[Act, Act]:
        """Return a step, and the one that undoes it."""
        chance = self._chance
        node = chance.choice(self._nodes)
        match kind:
            case "cut":
                process = chance.choice(self._processes)
                return Cut(node, True, process, close=chance.random() < 0.5), Heal(node, process)
            case "hold":
                direction, word = chance.choice(("requests", "answers")), chance.choice(self._messages)
                return Hold(direction, word, node, ANY), Release(word, node, ANY, direction)
        return Inject(kind, (SERVICE,)), Inject(self._undoes[kind], (SERVICE,))
