"""
Adds faults of machines to wide schedules: disks that fill up, that lose what an fsync was to write, or that are
lost whole; and brokers that are shut down cleanly.

At most one disk of a schedule is lost, while its node is down: whatever the ISRs are, one copy of each record that
two replicas have is then left, unless another fault takes it. A record whose only in-sync copy was on that disk is
lost with it, and the judge calls that loss permitted.

They have a random source of their own, so that all other steps of a seed are the same with them and without.
Where a fault falls into a time in which its node is down already, it is skipped when its turn comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from harness.cluster.fault import Fault
from harness.scenario.steps import Act, Inject

# How often each of these faults comes, relative to the others.
WEIGHTS: Final[Mapping[str, float]] = {"stop": 2.0, "disk-full": 1.0, "flush-error": 1.5, "lose-disk": 1.5}
# What takes a node down whose disk is lost then.
BEFORE_LOSS: Final = ("kill", "stop", "power-loss")
LOSE_DISK: Final = "lose-disk"
STOP: Final = "stop"
# How many of these faults a schedule has at most, and how often it has none.
FAULTS_MAX: Final = 3
NONE_SHARE: Final = 0.45
# How often the node is restarted by the schedule, and after how many steps at most; else it is down to the end.
RESTART_SHARE: Final = 0.85
RESTART_AFTER_MAX: Final = 8
# How often the session of a node whose disk was lost is ended, so that a controller sees it go.
EXPIRE_SHARE: Final = 0.5


def with_hardware(
    seed: int, steps: Sequence[Act], nodes: Sequence[str], stores: Sequence[str], faults: Mapping[str, Fault]
) -> list[Act]:
    """
    Return the steps with faults of machines among them, each after the first step.

    Args:
        nodes: those that may be stopped.
        stores: those whose disk holds a replica.
        faults: the table of faults; of those of WEIGHTS only what it has is drawn.
    """
    chance = Random(f"hardware {seed}")
    found = list(steps)
    weights = {name: weight for name, weight in WEIGHTS.items() if name in faults}
    if not weights or chance.random() < NONE_SHARE:
        return found
    for _ in range(chance.randint(1, FAULTS_MAX)):
        name = chance.choices(list(weights), list(weights.values()))[0]
        node = (chance.choice(nodes if name == STOP else stores),)
        acts = [Inject(name, node)]
        if name == LOSE_DISK:
            acts = _loss(chance, node)
            del weights[LOSE_DISK]
        if chance.random() < RESTART_SHARE:
            acts.append(Inject("restart", node))
        at = chance.randint(1, len(found))
        for act in acts:
            found.insert(at, act)
            at = min(at + 1 + chance.randint(0, RESTART_AFTER_MAX), len(found))
    return found


def _loss(chance: Random, node: tuple[str, ...]) -> list[Inject]:
    """Return the steps that take a node down and its disk with it."""
    acts = [Inject(chance.choice(BEFORE_LOSS), node), Inject(LOSE_DISK, node)]
    if chance.random() < EXPIRE_SHARE:
        acts.insert(1, Inject("expire", node))
    return acts
