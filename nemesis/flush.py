"""Flush a node's disk from outside, as the operating system may at any time."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Call syncfs on the node's filesystem; there is no probe, but the next power loss shows what was durable."""
    return cluster.host.flush(name)


FAULT = Fault(
    name="flush",
    doc="syncfs the disk",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    band=Band.MARK,
)
