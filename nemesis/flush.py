"""Make everything on a node's disk durable, from outside, as the operating system does when it likes."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Flush it: syncfs on the node's filesystem; that it held is seen when power goes."""
    return cluster.host.flush(name)


FAULT = Fault(
    name="flush",
    doc="syncfs the disk",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    band=Band.MARK,
)
