"""
Stop a node's process with SIGTERM: it closes its session, flushes its logs and leaves a clean-shutdown marker.

The controller sees it go at once, and the next start trusts the disk without recovery.
Source:  Kafka, LogManager.shutdown; KAFKA-10471 (a marker that is not true); KAFKA-1120 (a fast return).
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from nemesis import kill, restart


def inject(cluster: Cluster, name: str) -> str:
    """Stop the process; the probe is that it has ended, and all its events are in the history."""
    return cluster.take_down(name, cluster.host.stop)


FAULT = Fault(
    name="stop",
    doc="SIGTERM the process; it shuts down cleanly",
    inject=inject,
    heal=restart.inject,
    probe=kill.probe,
    effect=Effect.DOWN,
    band=Band.DOWN,
    weight=0.0,
    by_itself=True,
    of_services=True,
)
