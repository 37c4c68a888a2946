"""Undo what was done to a broker's links: partitions, jams, delays and losses."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import end
from harness.effect import ON_LINKS, Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Lift the rules of the node's links; the probe is the fabric, in which none of them is in force any more."""
    return end(cluster, name)


FAULT = Fault(
    name="reconnect",
    doc="undo what was done to the node's links, and say how many frames each of them lost",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=ON_LINKS,
    band=Band.MARK,
    weight=0.0,
    of_services=True,
)
