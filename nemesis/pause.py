"""Stop a node's process in its tracks, as a long garbage collection does; its connections stay open."""

from __future__ import annotations

from harness.cluster import Cluster
from harness.fault import Band, Fault
from nemesis import resume


def inject(cluster: Cluster, name: str) -> str:
    """Pause it; the host's probe is that the kernel has stopped each of its threads."""
    seen = cluster.host.pause(name)
    cluster.paused.add(name)
    return seen


FAULT = Fault(
    name="pause",
    doc="SIGSTOP the process (docker pause in a container)",
    inject=inject,
    heal=resume.inject,
    band=Band.PAUSED,
)
