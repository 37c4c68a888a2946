"""Let a node's write fail with EIO: nothing of it is in the file, and its broker must end."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import NEEDS, DiskError
from harness.cluster.failing_disk import fail
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Break the disk until a write has failed; the probe is that the broker has ended by itself."""
    return fail(cluster, name, DiskError.WRITE)


FAULT = Fault(
    name="write-error",
    doc="let a write fail with EIO; the broker must end",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.DOWN,
    band=Band.DOWN,
    weight=0.0,
    by_itself=True,
    needs=(NEEDS[DiskError.WRITE],),
)
