"""Suspend a node's process, as a long garbage collection does; its connections stay open."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import resume


def inject(cluster: Cluster, name: str) -> str:
    """Pause the process; the host's probe is that the kernel has stopped all its threads."""
    return cluster.host.pause(name)


def probe(cluster: Cluster, name: str) -> str:
    """Return that the process runs, "" while it is stopped."""
    return "" if cluster.host.paused(name) else "its process runs; expected it stopped"


FAULT = Fault(
    name="pause",
    doc="SIGSTOP the process (docker pause in a container)",
    inject=inject,
    heal=resume.inject,
    probe=probe,
    effect=Effect.PAUSED,
    band=Band.PAUSED,
    of_services=True,
)
