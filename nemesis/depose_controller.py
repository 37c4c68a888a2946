"""
Take the controller's office from a node that does not fail: another, or the same anew, takes it.

Source:  Kafka Replication Design V3, controller failover; KAFKA-6082.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Remove its office's node; the probe is that nobody has the office, or holds it by a node made since."""
    holder = cluster.zookeeper_view.controller()
    if holder != name:
        raise PreconditionError(f"depose-controller {name}: the controller is {holder}; expected {name}")
    return cluster.zookeeper_view.depose()


FAULT = Fault(
    name="depose-controller",
    doc="take the controller's office from it, on ZooKeeper's side",
    inject=inject,
    heal=None,
    effect=Effect.OFFICE_LOST,
    band=Band.MARK,
)
