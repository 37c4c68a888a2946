"""
Depose a controller that has not failed; another node, or the same one again, becomes controller.

Source:  Kafka Replication Design V3, controller failover; KAFKA-6082.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError


def inject(cluster: Cluster, name: str) -> str:
    """Delete the controller's znode; the probe is that it is gone, or was created anew."""
    holder = cluster.zookeeper_view.controller()
    if holder != name:
        raise PreconditionError(f"depose-controller {name}: the controller is {holder}; expected {name}")
    return cluster.zookeeper_view.depose()


FAULT = Fault(
    name="depose-controller",
    doc="delete the controller's znode, so that another node, or the same one again, becomes controller",
    inject=inject,
    heal=None,
    effect=Effect.OFFICE_LOST,
    band=Band.MARK,
)
