"""
Remove a member from a stream's group: it is dropped at once, and another server takes its place, empty.

A move (`move-away`) keeps the old member until the new one has all; this does not.
Source:  NATS's documentation, "nats stream cluster peer-remove"; jetstream_api.go, jsStreamRemovePeerRequest.
"""

from __future__ import annotations

from dataclasses import replace

from harness.cluster.cluster import Cluster
from nemesis import move_away
from targets.nats.nemeses.of_nats import operator_of


def inject(cluster: Cluster, name: str) -> str:
    """Ask the meta group's leader; the probe is that the node is not among the members that are wanted."""
    return operator_of(cluster).expel(*cluster.named.place, name)


def why_not(cluster: Cluster, name: str) -> str:
    """Return why a node cannot be removed now, "" if it can."""
    members = cluster.operator.wanted(*cluster.named.place)
    if name not in members:
        return f"{name} is no member of the stream's group"
    return "" if {*cluster.ids} - {*members} else "no other server could take its place"


FAULT = replace(
    move_away.FAULT,
    name="peer-remove",
    doc="remove the node from the group of the stream at once; another server takes its place, empty",
    inject=inject,
    why_not=why_not,
)
