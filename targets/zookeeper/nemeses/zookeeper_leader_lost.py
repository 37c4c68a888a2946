"""
Kill the server that leads ZooKeeper's ensemble: another leads, after a while in which nobody is answered.

Every connection ends, and clients continue their sessions on another server, if they are in time: the new leader
gives each session its whole timeout again. What was asked and not answered may have been done or not.
Source:  ZooKeeper Internals, "Leader Activation"; its SessionTracker; KAFKA-6880 (what brokers make of it).
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
    """Kill the leader of the run's own ensemble; the probe is another server that leads and answers."""
    return services_of(cluster, f"zookeeper-leader-lost {name}").lose_leader(ZOOKEEPER.name)


def probe(cluster: Cluster, name: str) -> str:
    """Return "" while a server is gone, else that none is."""
    lacking = services_of(cluster, f"zookeeper-leader-lost {name}").lacking()
    return "" if lacking else "every server of ZooKeeper serves; expected one to be gone"


FAULT = Fault(
    name="zookeeper-leader-lost",
    doc="kill the leader of the run's own ZooKeeper ensemble of three; another leads since; it hits all nodes",
    inject=inject,
    heal=metadata_fault.end,
    probe=probe,
    effect=Effect.METADATA_WEAK,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(Ability.SERVICE_ENSEMBLE,),
    everywhere=True,
)
