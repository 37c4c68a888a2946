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


def inject(cluster: Cluster, name: str) -> str:
    """Replace the disk; the probe is that the node has no log any more."""
    return cluster.host.lose_disk(name)


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
    effect=Effect.DISK_LOST,
    band=Band.MARK,
    weight=0.0,
    needs=(Ability.LOST_DISKS,),
)
