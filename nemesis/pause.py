"""Suspend a node's process, as a long garbage collection does; its connections stay open."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import resume


def inject(cluster: Cluster, name: str) -> str:
    """Pause the process; the host's probe is that the kernel has stopped all its threads."""
    return cluster.host.pause(name)


FAULT = Fault(
    name="pause",
    doc="SIGSTOP the process (docker pause in a container)",
    inject=inject,
    heal=resume.inject,
    effect=Effect.PAUSED,
    band=Band.PAUSED,
)
