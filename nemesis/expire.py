"""
End a node's ZooKeeper session from outside, as an expiry does, whether the node runs or not.

The harness also ends dead sessions in this way instead of waiting for their timeout.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Close the session; the probe is that the registration is gone."""
    return cluster.zookeeper_view.expire(name)


FAULT = Fault(
    name="expire",
    doc="close the session that holds the registration, on the server's side",
    inject=inject,
    heal=None,
    effect=Effect.SESSION_ENDED,
    band=Band.MARK,
)
