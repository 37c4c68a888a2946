"""Make a node's disk slow: nothing fails, and each read, write and flush takes longer, until it is mended."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.disk_error import NEEDS, DiskError
from harness.cluster.failing_disk import is_slow
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import mend_disk


def inject(cluster: Cluster, name: str) -> str:
    """Slow the disk down; the probe is a call of ours that took longer, and what the disk says of itself."""
    return cluster.host.break_disk(name, DiskError.SLOW)


FAULT = Fault(
    name="disk-slow",
    doc="let every call on the disk take longer",
    inject=inject,
    heal=mend_disk.inject,
    probe=is_slow,
    effect=Effect.DISK_SLOW,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(NEEDS[DiskError.SLOW],),
)
