"""
Make a zombie of a node: cut from ZooKeeper, its session ended, while its process and its fetchers live on.

Source:  KAFKA-6880; KAFKA-6879; Kafka Replication Design V3, on a leader that lost its session.
"""

from __future__ import annotations

from typing import Final

from harness.cluster import Cluster
from harness.fault import Band, Fault
from harness.model import PreconditionError
from nemesis import return_

ZOOKEEPER: Final = "zookeeper"


def inject(cluster: Cluster, name: str) -> str:
    """Cut it, then end its session; the probe is a process that lives and is registered nowhere."""
    if name in cluster.zombies:
        raise PreconditionError(f"zombie {name}: it is one already; expected a node that reaches ZooKeeper")
    cluster.zombies[name] = cluster.fabric.cut(name, ZOOKEEPER, close=True)
    seen = cluster.observer.expire(name)
    if not cluster.host.alive(name):
        raise PreconditionError(f"zombie {name}: its process is gone; expected it to live on ({seen})")
    if session := cluster.observer.registered(name):
        raise PreconditionError(f"zombie {name}: registered again in session 0x{session:x}; expected it cut off")
    return f"{seen}; its process lives on, cut from ZooKeeper"


FAULT = Fault(
    name="zombie",
    doc="cut it from ZooKeeper and end its session; its process and its fetchers live on",
    inject=inject,
    heal=return_.inject,
    band=Band.ZOMBIE,
)
