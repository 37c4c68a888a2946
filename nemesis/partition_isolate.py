"""
Part one broker from all others.

Clients and ZooKeeper still reach it, so a leader goes on to be asked, and keeps its session.
Source:  Jepsen, nemesis.clj (partitioners); docs/architecture.md, Links.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import isolate, probe
from harness.effect import Band, Effect
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Cut every link between the node and the others; the probe is a frame that was lost."""
    return isolate(cluster, "partition-isolate", Effect.PARTITIONED, name)


FAULT = Fault(
    name="partition-isolate",
    doc="part the node from all other brokers; clients and ZooKeeper reach it",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.PARTITIONED,
    band=Band.IMPAIRED,
    weight=0.0,
    of_services=True,
)
