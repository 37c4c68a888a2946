"""
Move a node's replica of the partition to another node, or give it up if every node has one.

The partition has the new replicas only once all of them are in sync; the log of the old one is deleted then.
Source:  Kafka Replication Design V3, F (replica reassignment); KIP-455.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.model import PreconditionError
from nemesis import move_back


def inject(cluster: Cluster, name: str) -> str:
    """Ask the controller; the probe is that the node is not among the replicas that are wanted."""
    partition = cluster.named
    wanted = cluster.operator.wanted(*partition.place)
    if reason := _why_not(cluster, name, wanted):
        raise PreconditionError(f"move-away {name}: {reason}")
    spare = next((other for other in cluster.ids if other not in wanted), None)
    target = [spare if node == name else node for node in wanted]
    return cluster.operator.move(*partition.place, [node for node in target if node is not None])


def why_not(cluster: Cluster, name: str) -> str:
    """Return why the partition cannot be moved away from a node, "" if it can."""
    return _why_not(cluster, name, cluster.operator.wanted(*cluster.named.place))


def _why_not(cluster: Cluster, name: str, wanted: Sequence[str | None]) -> str:
    if name not in wanted:
        return f"it is no replica of the partition, which has {', '.join(map(str, wanted))}"
    return "" if {*cluster.ids, *wanted} - {name} else "no other node could have the partition"


def probe(cluster: Cluster, name: str) -> str:
    """Return "" while a partition that the head placed on the node is wanted elsewhere."""
    operator = cluster.operator
    mine = [partition for partition in cluster.partitions if name in partition.replicas]
    if any(name not in operator.wanted(*partition.place) for partition in mine):
        return ""
    return f"{name} is wanted as a replica of {', '.join(str(partition.place) for partition in mine)}"


FAULT = Fault(
    name="move-away",
    doc="move the partition's replica of this node to another node, or give it up if each node has one",
    inject=inject,
    heal=move_back.inject,
    probe=probe,
    effect=Effect.MOVED_AWAY,
    band=Band.IMPAIRED,
    weight=0.0,
    why_not=why_not,
    needs=(Ability.MOVE,),
)
