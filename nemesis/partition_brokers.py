"""
Part every broker from every other one, and none from clients or ZooKeeper.

Each leader is then alone: it takes records with acks=1, and cannot commit them before its ISR shrinks.
Source:  Jepsen, nemesis.clj (partitioners); docs/architecture.md, Links.
"""

from __future__ import annotations

from itertools import permutations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import probe, sever
from harness.effect import Band, Effect
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Cut every link between brokers; the probe is a frame that was lost."""
    return sever(cluster, "partition-brokers", Effect.PARTITIONED, name, permutations(cluster.ids, 2))


FAULT = Fault(
    name="partition-brokers",
    doc="part every broker from every other one; clients and ZooKeeper reach them all; the node is one of them",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.PARTITIONED,
    band=Band.IMPAIRED,
    weight=0.0,
)
