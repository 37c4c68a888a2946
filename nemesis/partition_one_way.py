"""
Part one broker from the others in one direction: it cannot ask, and answers what it is asked.

A link carries requests and their answers. What the node asks is lost, as behind a firewall that lets only
others open connections; with TCP, loss of single packets in one direction would end both.
Source:  Jepsen, nemesis.clj; Cloudflare's outage of 2020-11-02 (a switch that failed in one direction).
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import probe, sever
from harness.effect import Band, Effect
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Cut the links on which the node asks; the probe is a frame that was lost."""
    links = [(name, other) for other in cluster.ids if other != name]
    return sever(cluster, "partition-one-way", Effect.PARTITIONED, name, links)


FAULT = Fault(
    name="partition-one-way",
    doc="lose what the node asks of other brokers; what they ask of it is answered",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.PARTITIONED,
    band=Band.IMPAIRED,
    weight=0.0,
)
