"""Fill a node's disk: its next write fails with ENOSPC, perhaps half way, and its broker must end."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import NEEDS, DiskError
from harness.cluster.failing_disk import fail
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Fill the disk until a write has failed; the probe is that the broker has ended by itself."""
    return fail(cluster, name, DiskError.FULL)


FAULT = Fault(
    name="disk-full",
    doc="let a write fail for lack of space, and free the disk when the broker has ended",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.DOWN,
    band=Band.DOWN,
    weight=0.0,
    by_itself=True,
    needs=(NEEDS[DiskError.FULL],),
)
