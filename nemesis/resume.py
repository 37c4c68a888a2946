"""Let a paused node go on."""

from __future__ import annotations

from harness.cluster import Cluster
from harness.fault import Band, Fault


def inject(cluster: Cluster, name: str) -> str:
    """Resume it; the host's probe is that the kernel runs it again."""
    seen = cluster.host.resume(name)
    cluster.paused.discard(name)
    return seen


FAULT = Fault(name="resume", doc="SIGCONT the process that was paused", inject=inject, heal=None, band=Band.MARK)
