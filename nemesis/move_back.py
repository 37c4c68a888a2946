"""
Move the partitions back that were moved away from a node: to the replicas that their head names.

Source:  Kafka Replication Design V3, F (replica reassignment); KIP-455.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect


def inject(cluster: Cluster, name: str) -> str:
    """Ask the controller; the probe is that the node is among the replicas that are wanted again."""
    operator, seen = cluster.operator, []
    for partition in cluster.partitions:
        if name in partition.replicas and name not in operator.wanted(*partition.place):
            seen.append(operator.move(*partition.place, partition.replicas))
    return "; ".join(seen) or f"nothing was moved away from {name}"


FAULT = Fault(
    name="move-back",
    doc="move the partitions back that were moved away from this node",
    inject=inject,
    heal=None,
    effect=Effect.NONE,
    heals=frozenset({Effect.MOVED_AWAY}),
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.MOVE,),
)
