"""Kill a node's process with SIGKILL: what it wrote stays in the page cache, its memory is lost."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import restart


def inject(cluster: Cluster, name: str) -> str:
    """Kill the process; the probe is that it is gone, and all its events are in the history."""
    return cluster.take_down(name, cluster.host.kill)


def probe(cluster: Cluster, name: str) -> str:
    """Return that the process is still alive, "" if it is gone."""
    return "its process is still alive; expected it gone" if cluster.host.alive(name) else ""


FAULT = Fault(
    name="kill",
    doc="SIGKILL the process; the page cache survives",
    inject=inject,
    heal=restart.inject,
    probe=probe,
    effect=Effect.DOWN,
    band=Band.DOWN,
    of_services=True,
)
