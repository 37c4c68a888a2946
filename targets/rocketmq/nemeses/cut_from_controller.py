"""
Cut a broker from the controllers alone: its heartbeats are missed, and it hears of no election.

Source:  RocketMQ's documentation, "Automatic Failover of Master-slave"; KAFKA-6879, KAFKA-6880.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster import link_fault, metadata_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from targets.rocketmq.services import CONTROLLER


def inject(cluster: Cluster, name: str) -> str:
    """Cut its links to controllers both ways; the probe is a connection or a frame that was lost."""
    links = link_fault.to_metadata(cluster, name, CONTROLLER)
    return link_fault.cut_from(cluster, "cut-from-controller", Effect.METADATA_LOST, name, links)


FAULT = Fault(
    name="cut-from-controller",
    doc="cut the broker from the controllers alone; its heartbeats are missed after ten seconds",
    inject=inject,
    heal=metadata_fault.end,
    probe=link_fault.probe,
    effect=Effect.METADATA_LOST,
    band=Band.IMPAIRED,
    weight=1.0,
    needs=(Ability.METADATA_LINKS,),
)
