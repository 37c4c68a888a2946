"""Stop a node's process in its tracks, as a long garbage collection does; its connections stay open."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import resume


def inject(cluster: Cluster, name: str) -> str:
    """Pause it; the host's probe is that the kernel has stopped each of its threads."""
    return cluster.host.pause(name)


FAULT = Fault(
    name="pause",
    doc="SIGSTOP the process (docker pause in a container)",
    inject=inject,
    heal=resume.inject,
    effect=Effect.PAUSED,
    band=Band.PAUSED,
)
