"""
Scale a stream to one replica, that of its leader, and let it have all again later.

A stream with one replica has no Raft group, or one of a single member. When it is scaled up, its group's terms may
begin with 1, and the others copy what the one has.
Source:  NATS's documentation, "nats stream edit --replicas"; jetstream_cluster.go, jsClusteredStreamUpdateRequest.
"""

from __future__ import annotations

from dataclasses import replace

from harness.cluster.cluster import Cluster
from harness.model import PreconditionError
from nemesis import move_away
from targets.nats.nemeses.of_nats import operator_of


def inject(cluster: Cluster, name: str) -> str:
    """Ask the meta group's leader; the probe is that the node is not among the replicas that are wanted."""
    if reason := why_not(cluster, name):
        raise PreconditionError(f"scale-down {name}: {reason}")
    return operator_of(cluster).shrink(*cluster.named.place, name)


def why_not(cluster: Cluster, name: str) -> str:
    """Return why the node would not lose its replica by it, "" if it would."""
    partition = cluster.named
    wanted = cluster.operator.wanted(*partition.place)
    if name not in wanted or len(wanted) == 1:
        return f"the stream is on {', '.join(map(str, wanted))}; expected {name} and others"
    led = partition.leader()
    return f"{led or 'nobody'} leads; expected another node to" if led in (None, name) else ""


FAULT = replace(
    move_away.FAULT,
    name="scale-down",
    doc="scale the stream to one replica, its leader's, so that this node has none, nor has any other follower",
    inject=inject,
    why_not=why_not,
)
