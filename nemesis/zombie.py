"""
Make a zombie of a node: cut from ZooKeeper, its session ended, while its process and its fetchers live on.

Source:  KAFKA-6880; KAFKA-6879; Kafka Replication Design V3, on a leader that lost its session.
"""

from __future__ import annotations

from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.in_force import FaultInForce
from harness.effect import Band, Effect
from harness.fabric.core.rules import ZOOKEEPER
from harness.model import PreconditionError
from nemesis import return_


def inject(cluster: Cluster, name: str) -> str:
    """Cut it, then end its session; the probe is a process that lives and is registered nowhere."""
    if name in cluster.zombies:
        raise PreconditionError(f"zombie {name}: it is one already; expected a node that reaches ZooKeeper")
    cut = cluster.fabric.cut(name, ZOOKEEPER, close=True)
    # Recorded here, since the cut is to be undone also when nothing more comes about.
    cluster.in_force.begin(FaultInForce(fault="zombie", effect=Effect.CUT_OFF, node=name, handle=cut))
    seen = cluster.zookeeper_view.expire(name)
    return f"{seen}; its process lives on, cut from ZooKeeper"


def probe(cluster: Cluster, name: str) -> str:
    """Say what contradicts it: a process that is gone, or a registration."""
    if not cluster.host.alive(name):
        return "its process is gone; expected it to live on"
    session = cluster.zookeeper_view.registered(name)
    return f"registered again in session 0x{session:x}; expected it cut off" if session else ""


FAULT = Fault(
    name="zombie",
    doc="cut it from ZooKeeper and end its session; its process and its fetchers live on",
    inject=inject,
    heal=return_.inject,
    probe=probe,
    effect=Effect.CUT_OFF,
    band=Band.ZOMBIE,
)
