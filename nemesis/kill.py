"""Kill a node's process with SIGKILL: what it wrote stays in the page cache, what it held in memory is gone."""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import restart


def inject(cluster: Cluster, name: str) -> str:
    """Kill it; the probe is that the process is gone and has told all that it did."""
    return cluster.take_down(name, cluster.host.kill)


def probe(cluster: Cluster, name: str) -> str:
    """Say that the process is still alive, "" when it is gone."""
    return "its process is still alive; expected it gone" if cluster.host.alive(name) else ""


FAULT = Fault(
    name="kill",
    doc="SIGKILL the process; the page cache survives",
    inject=inject,
    heal=restart.inject,
    probe=probe,
    effect=Effect.DOWN,
    band=Band.DOWN,
)
