"""
End a node's ZooKeeper session from outside, as an expiry does, whether the node runs or not.

The harness also ends dead sessions in this way instead of waiting for their timeout.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Close the session; the probe is that the registration is gone, or of another session."""
    return cluster.zookeeper_view.expire(name)


def watch(cluster: Cluster, name: str) -> Callable[[], str]:
    """Note the session that holds the registration; return what tells that it still does."""
    before = cluster.zookeeper_view.registered(name)

    def unchanged() -> str:
        still = cluster.zookeeper_view.registered(name) == before
        return f"session 0x{before:x} still holds its registration; expected it ended" if still else ""

    return unchanged


FAULT = Fault(
    name="expire",
    doc="close the session that holds the registration, on the server's side",
    inject=inject,
    heal=None,
    watch=watch,
    effect=Effect.SESSION_ENDED,
    band=Band.MARK,
)
