"""
Jam the links of a broker: what it and the others send waits, and arrives when the jam ends.

Nothing is lost, and no connection ends. All frames behind one that waits wait too, in their order.
Source:  docs/architecture.md, Links (hold).
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import ANY_API, DIRECTIONS, LinkRules, around, begin, probe, refuse_twice
from harness.effect import Band, Effect
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Hold all frames between the node and the others; the probe is a frame that is held."""
    refuse_twice(cluster, "jam", name)
    pairs = [(link, direction) for link in around(cluster, name) for direction in DIRECTIONS]
    holds = tuple(cluster.fabric.hold(ANY_API, *link, direction) for link, direction in pairs)
    return begin(cluster, "jam", Effect.LINKS_IMPAIRED, name, LinkRules(word="held", rules=holds))


FAULT = Fault(
    name="jam",
    doc="let everything wait that the node and other brokers send each other, until it is undone",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.LINKS_IMPAIRED,
    band=Band.IMPAIRED,
    weight=0.0,
)
