"""Let a node's fsync fail with EIO: what it was to make durable may be gone, and its broker must end."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import NEEDS, DiskError
from harness.cluster.failing_disk import fail
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Break the disk until an fsync has failed; the probe is that the broker has ended by itself."""
    return fail(cluster, name, DiskError.FLUSH)


FAULT = Fault(
    name="flush-error",
    doc="let an fsync fail and lose the pages that it was to write; the broker must end",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.PAGES_LOST,
    band=Band.DOWN,
    weight=0.0,
    by_itself=True,
    needs=(NEEDS[DiskError.FLUSH],),
)
