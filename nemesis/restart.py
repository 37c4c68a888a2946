"""Start a node again that is down; its old registration may still stand, and is then taken over."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import DOWN, Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Start it; the probe is a registration in a session that was not there before."""
    return cluster.start(name)


FAULT = Fault(
    name="restart",
    doc="start the process again; it registers in a new session",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=DOWN,
    band=Band.MARK,
)
