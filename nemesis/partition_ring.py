"""
Let each broker reach its neighbours in a ring alone, so that no two agree on who is there.

Of three brokers, who are neighbours all, each reaches the next one alone.
Source:  Jepsen, nemesis.clj (majorities-ring).
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import across_the_ring, probe, sever
from harness.effect import Band, Effect
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Cut every link that is no side of the ring; the probe is a frame that was lost."""
    return sever(cluster, "partition-ring", Effect.PARTITIONED, name, across_the_ring(cluster, name))


FAULT = Fault(
    name="partition-ring",
    doc="let each broker reach its two neighbours alone, of three the next one alone; the node is one of them",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.PARTITIONED,
    band=Band.IMPAIRED,
    weight=0.0,
)
