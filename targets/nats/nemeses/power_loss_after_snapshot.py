"""
Cut a node's power right after it has taken a snapshot of the stream: what the snapshot counts may be lost.

A server that begins to lead without a snapshot takes one at once. It is flushed, and the messages that it counts
are not.
Source:  nats-server 2.15.3, raft.go, NeedSnapshot, installSnapshot; jetstream_cluster.go, monitorStream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from nemesis import power_loss
from targets.nats.nemeses.of_nats import snapshot_of

SNAPSHOT_S_MAX: Final = 5.0


def inject(cluster: Cluster, name: str) -> str:
    """Have the node lead, await its snapshot, and cut its power; the probes are those of both."""
    partition, before = cluster.named, snapshot_of(cluster, name)
    if partition.leader() == name:
        raise PreconditionError(f"power-loss-after-snapshot {name}: it leads already; expected another to lead")
    cluster.operator.elect(*partition.place, name)
    taken = [before]

    def takes() -> bool:
        taken.append(snapshot_of(cluster, name))
        return cluster.cancelled or taken[-1] > before

    if not cluster.time.until(takes, SNAPSHOT_S_MAX):
        raise PreconditionError(
            f"power-loss-after-snapshot {name}: it took none within {SNAPSHOT_S_MAX:g} s; expected one as it leads"
        )
    return f"snapshot up to index {taken[-1]} of its Raft log; {power_loss.inject(cluster, name)}"


def why_not(cluster: Cluster, name: str) -> str:
    """Return why a node would take no snapshot by being elected now, "" if it would."""
    partition = cluster.named
    if name not in partition.isr():
        return f"{name} is no member of the stream's group"
    if partition.leader() in (None, name):
        return f"{partition.leader() or 'nobody'} leads"
    taken = snapshot_of(cluster, name)
    return f"{name} has a snapshot up to index {taken}, and takes no other for it" if taken else ""


FAULT = replace(
    power_loss.FAULT,
    name="power-loss-after-snapshot",
    doc="have the node lead, and cut its power as soon as it has taken its first snapshot of the stream",
    inject=inject,
    weight=0.5,
    by_itself=True,
    why_not=why_not,
    of_services=False,
    needs=(Ability.ELECT,),
)
