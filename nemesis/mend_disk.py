"""Let a slow disk work as it should again."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Mend the disk; the probe is how many calls took longer, and that the disk says that it is well."""
    return cluster.host.mend_disk(name) or "no call was made meanwhile"


FAULT = Fault(
    name="mend-disk",
    doc="let a slow disk work as it should again",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.DISK_SLOW}),
    band=Band.MARK,
    weight=0.0,
)
