"""
Depose a controller that has not failed; another node, or the same one again, becomes controller.

Source:  Kafka Replication Design V3, controller failover; KAFKA-6082.
"""

from __future__ import annotations

from collections.abc import Callable

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


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note which znode is the controller's; return what tells that it is still there."""
    before = cluster.zookeeper_view.office_made()

    def unchanged() -> str:
        still = cluster.zookeeper_view.office_made() == before
        return f"/controller of {name} is still there; expected it gone, or made anew" if still else ""

    return unchanged


FAULT = Fault(
    name="depose-controller",
    doc="delete the controller's znode, so that another node, or the same one again, becomes controller",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.OFFICE_LOST,
    band=Band.MARK,
)
