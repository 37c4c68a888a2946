"""Restart a node that is down; if its old registration still exists, the node takes it over."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import DOWN, Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Start the process; the probe is a registration in a new session."""
    return cluster.start(name)


FAULT = Fault(
    name="restart",
    doc="start the process again; it registers in a new session",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=DOWN,
    band=Band.MARK,
    of_services=True,
)
