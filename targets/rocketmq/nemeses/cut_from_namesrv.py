"""
Cut a broker from the name servers alone: it cannot ask where its master is, nor say that it is one.

Source:  RocketMQ's documentation, "Automatic Failover of Master-slave".
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster import link_fault, metadata_fault
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from targets.rocketmq.services import NAMESRV


def inject(cluster: Cluster, name: str) -> str:
    """Cut its links to name servers both ways; the probe is a connection or a frame that was lost."""
    links = link_fault.to_metadata(cluster, name, NAMESRV)
    return link_fault.cut_from(cluster, "cut-from-namesrv", Effect.METADATA_LOST, name, links)


FAULT = Fault(
    name="cut-from-namesrv",
    doc="cut the broker from the name servers alone; as a slave it does not find a new master",
    inject=inject,
    heal=metadata_fault.end,
    probe=link_fault.probe,
    effect=Effect.METADATA_LOST,
    band=Band.IMPAIRED,
    weight=0.5,
    needs=(Ability.METADATA_LINKS,),
)
