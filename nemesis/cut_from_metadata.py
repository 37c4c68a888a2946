"""
Cut a broker from the metadata alone: they hear no more of each other, and a time-out ends its session, or nothing.

A zombie's session is ended at once (nemesis/zombie.py). Here a broker that returns in time continues its session.
Source:  Apache ZooKeeper's programmer's guide: "ZooKeeper Sessions"; KAFKA-6879; KAFKA-6880.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster import link_fault, metadata_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Cut its links to the metadata, and reset them; the probe is a connection or a frame that was lost."""
    link_fault.refuse_twice(cluster, "cut-from-metadata", name)
    cuts = tuple(cluster.fabric.cut(*link, close=True) for link in link_fault.to_metadata(cluster, name))
    rules = link_fault.LinkRules(word="lost", rules=cuts)
    return link_fault.begin(cluster, "cut-from-metadata", Effect.METADATA_LOST, name, rules)


FAULT = Fault(
    name="cut-from-metadata",
    doc="cut the node from the metadata alone; its session lives on until its own timeout",
    inject=inject,
    heal=metadata_fault.end,
    probe=link_fault.probe,
    effect=Effect.METADATA_LOST,
    band=Band.IMPAIRED,
    weight=0.0,
    needs=(Ability.METADATA_LINKS,),
    from_services=True,
)
