"""Undo what parts brokers from ZooKeeper: its servers serve again, and nobody is cut from it."""

from __future__ import annotations

from harness.cluster import zookeeper_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import ON_ZOOKEEPER, Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Thaw and restart servers, heal links; the probe is that all servers serve, and who was cut is registered."""
    return zookeeper_fault.end(cluster, name)


FAULT = Fault(
    name="zookeeper-back",
    doc="let ZooKeeper's servers serve again, and heal the links of all nodes that were cut from it",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=ON_ZOOKEEPER,
    band=Band.MARK,
    weight=0.0,
    everywhere=True,
)
