"""
Let ZooKeeper stop answering: its servers are frozen, connections stay open, and every request waits.

Brokers go on with what they know. Sessions end by ZooKeeper's own time, which stands still in a frozen server.
Source:  Apache ZooKeeper's programmer's guide: "ZooKeeper Sessions"; KIP-101's failures all go through it.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster import metadata_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.metadata_fault import services_of
from harness.effect import Band, Effect
from targets.zookeeper.server import ZOOKEEPER


def inject(cluster: Cluster, name: str) -> str:
    """Freeze all servers of the run's own ZooKeeper; the probe is a question that is not answered."""
    return services_of(cluster, f"zookeeper-outage {name}").halt(ZOOKEEPER.name)


def probe(cluster: Cluster, name: str) -> str:
    """Return "" while nobody is answered, else that somebody is."""
    return "" if services_of(cluster, f"zookeeper-outage {name}").out else "ZooKeeper answers; expected it out"


FAULT = Fault(
    name="zookeeper-outage",
    doc="freeze the servers of the run's own ZooKeeper, so that it answers nobody; it hits all nodes",
    inject=inject,
    heal=metadata_fault.end,
    probe=probe,
    effect=Effect.METADATA_LOST,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(Ability.OWN_SERVICES,),
    everywhere=True,
)
