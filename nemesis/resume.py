"""Resume a paused node."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Resume the process; the host's probe is that the kernel runs it again."""
    return cluster.host.resume(name)


FAULT = Fault(
    name="resume",
    doc="SIGCONT the process that was paused",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.PAUSED}),
    band=Band.MARK,
    of_services=True,
)
