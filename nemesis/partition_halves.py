"""
Part the brokers into two halves that do not reach each other.

The aimed node and those after it are one half, in the order of the run's nodes; of an odd number the smaller.
Clients and ZooKeeper reach both.
Source:  Jepsen, nemesis.clj (partitioners); docs/architecture.md, Links.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import between, half_of, probe, sever
from harness.effect import Band, Effect
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Cut every link between the halves; the probe is a frame that was lost."""
    half = half_of(cluster, name)
    links = between(half, [each for each in cluster.ids if each not in half])
    return sever(cluster, "partition-halves", Effect.PARTITIONED, name, links)


FAULT = Fault(
    name="partition-halves",
    doc="part the brokers into two halves, one of which begins with the node; clients and ZooKeeper reach both",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.PARTITIONED,
    band=Band.IMPAIRED,
    weight=0.0,
)
