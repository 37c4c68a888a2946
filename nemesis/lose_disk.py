"""
Lose a node's disk while the node is down: it comes back with an empty one, and has everything to copy.

Every copy that it had is gone, flushed or not. A record that no other in-sync replica has is lost with it, which
no protocol can prevent.
Source:  KIP-903, Motivation (a replica that returns with an empty disk), for ZooKeeper mode.
"""

from __future__ import annotations

from harness.ability import Ability
from harness.cluster.cluster import Cluster
from harness.cluster.fault import Fault
from harness.effect import Band, Effect
from harness.target.target import keeps_metadata


def inject(cluster: Cluster, name: str) -> str:
    """Replace the disk; the probe is that the node has no log any more."""
    seen = cluster.host.lose_disk(name)
    cluster.emptied.add(name)
    return seen


def why_not(cluster: Cluster, name: str) -> str:
    """Return that nobody would be left who may lead, or half of the disks with the metadata; "" for neither."""
    lost = {*cluster.emptied, name}
    if cluster.traits.begins_flushed and not {*cluster.named.isr()} - lost:
        return f"{name} is the last of the ISR with its disk, and would come back as another node"
    if not keeps_metadata(cluster.target):
        return ""
    if 2 * len(lost) < len(cluster.ids):
        return ""
    return f"{', '.join(sorted(lost))} would have lost their disks, of {len(cluster.ids)} that have the metadata"


def probe(cluster: Cluster, name: str) -> str:
    """Return that the node has a log, "" if it has none."""
    end = cluster.named.log_end(name)
    return "" if end < 0 else f"its log ends at {end}; expected a disk without one"


FAULT = Fault(
    name="lose-disk",
    doc="give a node that is down an empty disk in place of its own",
    inject=inject,
    heal=None,
    probe=probe,
    why_not=why_not,
    effect=Effect.DISK_LOST,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.LOST_DISKS,),
)
