"""
Adds steps about commands to give a replica up, where the workload deletes topics: holds, doublings and delays.

They have a random source of their own, so that all other steps of a seed are the same with them and without.

Source:  KIP-516, Motivation: a broker that missed a deletion serves the new topic from the old log.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Final

from harness.scenario.steps import Act, Delay, Double, Hold, Inject, Pass, Release
from harness.target.wire import ANY, Word

API: Final = Word.STOP.value
# How many of these steps a schedule has at most; a release is none of them.
STOPS_MAX: Final = 4
# How often a schedule has none.
NONE_SHARE: Final = 0.25
# How often the controller is deposed while a request of its is held, and the fault that does so.
DEPOSED_SHARE: Final = 0.4
DEPOSE: Final = "depose-controller"
# How often one is held until another controller is in office; the times for it to be sent, and for an election.
OVERTAKEN_SHARE: Final = 0.6
HELD_MS: Final = (10.0, 60.0)
COMMANDED_MS: Final = (40.0, 120.0)


def with_stops(
    seed: int, steps: Sequence[Act], nodes: Sequence[str], delay_s: tuple[float, float], controller: str = ""
) -> list[Act]:
    """
    Return the steps with those about such commands among them, each after the first step.

    Args:
        nodes: those that may be told to stop a replica.
        delay_s: the shortest and the longest delay.
        controller: the node that is deposed now and then while a request is held; "" for none.
    """
    chance = Random(f"stops {seed}")
    found = list(steps)
    if chance.random() < NONE_SHARE:
        return found
    for _ in range(chance.randint(1, STOPS_MAX)):
        act = _drawn(chance, nodes, delay_s)
        if act in found:
            continue
        at = chance.randint(1, len(found))
        found.insert(at, act)
        # Now and then it is held to the end of the schedule.
        if isinstance(act, Hold) and chance.random() < 0.8:
            release = Release(act.api, act.src, act.dst, act.direction)
            found.insert(chance.randint(at + 1, min(at + 12, len(found))), release)
            if controller and act.direction == "requests" and chance.random() < DEPOSED_SHARE:
                found.insert(at + 1, Inject(DEPOSE, (controller,)))  # what is held is then an older controller's
    if controller and chance.random() < OVERTAKEN_SHARE:
        at = chance.randint(1, len(found))
        found[at:at] = _overtaken(chance, nodes, controller)
    return found


def _overtaken(chance: Random, nodes: Sequence[str], controller: str) -> list[Act]:
    """Return steps in which a request is held until a later controller has commanded its receiver."""
    node = chance.choice(nodes)
    held, commanded = (Pass(Decimal(f"{chance.uniform(*ms):.1f}")) for ms in (HELD_MS, COMMANDED_MS))
    depose = Inject(DEPOSE, (controller,))
    return [Hold("requests", API, ANY, node), held, depose, commanded, Release(API, ANY, node, "requests")]


def _drawn(chance: Random, nodes: Sequence[str], delay_s: tuple[float, float]) -> Act:
    node = chance.choice(nodes)
    match chance.choice(("hold", "hold", "hold-answer", "double", "delay")):
        case "hold":
            return Hold("requests", API, ANY, node)
        case "hold-answer":
            return Hold("answers", API, ANY, node)
        case "double":
            return Double(API, ANY, node)
        case _:
            return Delay("requests", API, ANY, node, Decimal(f"{chance.uniform(*delay_s):.3f}"))
