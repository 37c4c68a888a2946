"""
Adds steps to a schedule that remove the highest partitions of a topic, and add them again.

What goes and comes is judged as a topic that is deleted and created again: its records are lost with it, and none
of them may come back. The rest of the run is judged as ever. A topic must have a partition that stays, and those
that are added have as many replicas as it has, as brokers want it. No client sends a record again: what it sent
first may be late, and land in the partition that was added.
They have a random source of their own, so that all other steps of a seed are the same with them and without.
Source:  Kafka Replication Design V3, Paths 6 and on_partitions_remove.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from harness.random_schedule.width import Breadth
from harness.scenario.steps import Act, Add, Remove
from harness.workload.plan import Clients, Place

# How often they are removed and added again: the last addition may be left out.
ROUNDS: Final = (1, 4)
LEFT_OUT_SHARE: Final = 0.25
# How often more of them go before they are added again.
TWICE_SHARE: Final = 0.6


def has_removals(seed: int, breadth: Breadth, clients: Clients) -> bool:
    """Return True if the wide run of a seed has such steps, where a topic has such partitions."""
    return clients.sends_once and Random(f"removals {seed}").random() < breadth.removals


def with_removals(seed: int, steps: Sequence[Act], further: Mapping[Place, tuple[str, ...]]) -> list[Act]:
    """Return the steps with removals and additions after the first; as they are if no partition may go."""
    chance = Random(f"removal {seed}")
    lowest = [place for place in further if may_go(place, further)]
    if not lowest:
        return list(steps)
    first = chance.choice(lowest)
    above = [place for place in further if place.topic == first.topic and place >= first]
    more: list[Act] = []
    again = Random(f"removals twice {seed}")
    for _ in range(chance.randint(*ROUNDS)):
        removed = chance.choice(above)
        below = [place for place in above if place < removed]
        twice = [Remove(again.choice(below))] if below and again.random() < TWICE_SHARE else []
        more += [Remove(removed), *twice, Add(max(above))]
    if chance.random() < LEFT_OUT_SHARE:
        more.pop()
    found = list(steps)
    # Mostly one soon after the other, so that what is late of the first meets the second.
    at = 1
    for act in more:
        at = chance.randint(at, min(len(found), at + 4 if isinstance(act, Add) else len(found)))
        found.insert(at, act)
        at += 1
    return found


def may_go(place: Place, further: Mapping[Place, tuple[str, ...]]) -> bool:
    """Return True if this partition and those above it may go, and be added again."""
    if not place.partition:
        return False
    stays = len(further[Place(place.topic, 0)])
    return all(len(of) == stays for each, of in further.items() if each.topic == place.topic and each >= place)
