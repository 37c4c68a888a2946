"""
Turn a node into a zombie: cut off from ZooKeeper, its session ended, while its process and fetchers keep running.

Source:  KAFKA-6880; KAFKA-6879; Kafka Replication Design V3, on a leader that lost its session.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.in_force import FaultInForce
from harness.effect import Band, Effect
from harness.fabric.core.rules import METADATA
from harness.model import PreconditionError
from nemesis import return_


def inject(cluster: Cluster, name: str) -> str:
    """Cut the link to ZooKeeper, then end the session; the probe is a process that runs without a registration."""
    if name in cluster.zombies:
        raise PreconditionError(f"zombie {name}: it is a zombie already; expected a node that reaches ZooKeeper")
    cut = cluster.fabric.cut(name, METADATA, close=True)
    # Recorded here, because the cut must be undone even if the next step fails.
    cluster.in_force.begin(FaultInForce(fault="zombie", effect=Effect.CUT_OFF, node=name, handle=cut))
    seen = cluster.operator.expire(name)
    return f"{seen}; its process lives on, cut from ZooKeeper"


def probe(cluster: Cluster, name: str) -> str:
    """Return what contradicts the fault: a process that is gone, or a registration; "" if nothing does."""
    if not cluster.host.alive(name):
        return "its process is gone; expected it to live on"
    session = cluster.metadata.incarnation(name)
    return f"registered again in session 0x{session:x}; expected it cut off" if session else ""


FAULT = Fault(
    name="zombie",
    doc="cut it off from ZooKeeper and end its session; its process and its fetchers keep running",
    inject=inject,
    heal=return_.inject,
    probe=probe,
    effect=Effect.CUT_OFF,
    band=Band.ZOMBIE,
    needs=(Ability.EXPIRE, Ability.METADATA_LINKS),
)
