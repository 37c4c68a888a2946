"""
Cut a node's power: its process ends, and everything that was not flushed is lost.

Source:  KIP-101, Scenario 2 ("a power outage which affects both of them"); docs/power-loss.md for the tiers.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Cut the power; the host's probe is a write that fails on the dead disk, or the bytes that were undone."""
    return cluster.take_down(name, cluster.host.power_loss)


FAULT = Fault(
    name="power-loss",
    doc="kill the process, and lose what was not flushed",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.POWER_LOST,
    band=Band.DOWN,
    of_services=True,
)
