"""
Slow the links of a broker: every frame between it and the others arrives a while later.

The time is above the interval of fetches and below every timeout, so that all go on, late.
Source:  docs/architecture.md, Links (delay).
"""

from __future__ import annotations

from typing import Final

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import ANY_API, DIRECTIONS, LinkRules, around, begin, probe, refuse_twice
from harness.effect import Band, Effect
from nemesis import reconnect

LATE_S: Final = 0.2


def inject(cluster: Cluster, name: str) -> str:
    """Delay all frames between the node and the others; the probe is a frame that is late."""
    refuse_twice(cluster, "slow-link", name)
    pairs = [(link, direction) for link in around(cluster, name) for direction in DIRECTIONS]
    delays = tuple(cluster.fabric.delay(ANY_API, *link, direction, LATE_S) for link, direction in pairs)
    return begin(cluster, "slow-link", Effect.LINKS_IMPAIRED, name, LinkRules(word="late", rules=delays))


FAULT = Fault(
    name="slow-link",
    doc="deliver 0.2 s later what the node and other brokers send each other",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.LINKS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
)
