"""
Part clients from one broker, which reaches all other brokers and ZooKeeper, and stays leader of what it leads.

Nothing elects another leader: clients that know only this one wait, and its followers have all that it has.
Clients reach brokers through the fabric only in a run whose schedule has this fault; in all others directly.
Source:  Jepsen, nemesis.clj (partitions of clients); docs/architecture.md, Links.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.cluster.link_fault import probe, sever
from harness.effect import Band, Effect
from harness.fabric.core.rules import CLIENTS
from nemesis import reconnect


def inject(cluster: Cluster, name: str) -> str:
    """Cut the link from clients to the node; the probe is a frame of theirs that was lost."""
    return sever(cluster, "partition-clients", Effect.CLIENTS_CUT, name, [(CLIENTS, name)])


FAULT = Fault(
    name="partition-clients",
    doc="part all clients from the node; brokers and ZooKeeper reach it",
    inject=inject,
    heal=reconnect.inject,
    probe=probe,
    effect=Effect.CLIENTS_CUT,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(Ability.CLIENT_LINKS,),
)
