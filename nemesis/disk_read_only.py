"""Make a node's disk read-only: whatever it changes next fails with EROFS, and its broker must end."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import NEEDS, DiskError
from harness.cluster.failing_disk import fail
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Make the disk read-only until a change has failed; the probe is that the broker has ended by itself."""
    return fail(cluster, name, DiskError.READ_ONLY)


FAULT = Fault(
    name="disk-read-only",
    doc="make the disk read-only until the broker has ended",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.DOWN,
    band=Band.DOWN,
    weight=0.0,
    by_itself=True,
    needs=(NEEDS[DiskError.READ_ONLY],),
)
