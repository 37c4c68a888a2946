"""
Adds faults of machines to wide schedules: disks that fill up, disks that lose what an fsync was to write, and
brokers that are shut down cleanly.

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
WEIGHTS: Final[Mapping[str, float]] = {"stop": 2.0, "disk-full": 1.0, "flush-error": 1.5}
# How many of these faults a schedule has at most, and how often it has none.
FAULTS_MAX: Final = 3
NONE_SHARE: Final = 0.4
# How often the node is restarted by the schedule, and after how many steps at most; else it is down to the end.
RESTART_SHARE: Final = 0.85
RESTART_AFTER_MAX: Final = 8


def with_hardware(seed: int, steps: Sequence[Act], nodes: Sequence[str], faults: Mapping[str, Fault]) -> list[Act]:
    """
    Return the steps with faults of machines among them, each after the first step.

    Args:
        nodes: those that may suffer one.
        faults: the table of faults; of those of WEIGHTS only what it has is drawn.
    """
    chance = Random(f"hardware {seed}")
    found = list(steps)
    weights = {name: weight for name, weight in WEIGHTS.items() if name in faults}
    if not weights or chance.random() < NONE_SHARE:
        return found
    for _ in range(chance.randint(1, FAULTS_MAX)):
        name = chance.choices(list(weights), list(weights.values()))[0]
        node = chance.choice(nodes)
        at = chance.randint(1, len(found))
        found.insert(at, Inject(name, (node,)))
        if chance.random() < RESTART_SHARE:
            back = min(at + 1 + chance.randint(0, RESTART_AFTER_MAX), len(found))
            found.insert(back, Inject("restart", (node,)))
    return found
