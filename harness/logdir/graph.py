"""
Merge the lineages of a partition's replicas into one graph, in which replicas that agree share nodes.

A node is a piece of lineage (leader epoch, start, end). Pieces end wherever a replica's epoch changes, or a log
or a disagreement begins or ends. Nodes are segments, not records, and stay few. Histories fork where more than
one piece follows a shared piece.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import networkx

from harness.logdir.lineage import Difference, LineageSegment, differences, lineage
from harness.logdir.scan import ReplicaLog

Graph: TypeAlias = Any  # a networkx.DiGraph of Node; the package has no types


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A piece of lineage that all its replicas share; group separates different records of the same epoch."""

    epoch: int | None
    start: int
    end: int
    group: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """An offset from which replicas with a shared past differ; each branch names its replicas."""

    offset: int
    branches: tuple[tuple[str, ...], ...]


def lineage_graph(logs: Mapping[str, ReplicaLog]) -> Graph:
    """
    Return a networkx.DiGraph of Nodes: replicas that agree share nodes, edges follow each replica's offsets.

    Nodes and edges have the attribute `replicas`, a set of names.
    """
    found = differences(logs)
    vectors = {name: lineage(log) for name, log in logs.items()}
    cuts = {bound for log in logs.values() for bound in (log.log_start_offset, log.log_end_offset)}
    cuts |= {bound for each in found for bound in (each.first, each.end)}
    cuts |= {bound for vector in vectors.values() for s in vector for bound in (s.start, s.end)}
    bounds = sorted(cuts)
    graph = networkx.DiGraph()
    for name, vector in vectors.items():
        before: Node | None = None
        for start, end in pairwise(bounds):
            node = _node(name, vector, found, start, end)
            if node is not None:
                _add(graph, name, before, node)
            before = node
    return graph


def fork_points(graph: Graph) -> tuple[Fork, ...]:
    """Return the forks of a shared history, by offset."""
    branches: dict[object, list[tuple[int, tuple[str, ...]]]] = {}
    for node, replicas in graph.nodes(data="replicas"):
        pasts = list(graph.predecessors(node))
        for past in pasts:
            here = (node.start, tuple(sorted(graph.edges[past, node]["replicas"])))
            branches.setdefault(past, []).append(here)
        if not pasts:
            # Pieces without a past begin at the same offset only if replicas differ from their first record on.
            branches.setdefault(node.start, []).append((node.start, tuple(sorted(replicas))))
    forks = [
        Fork(offset=found[0][0], branches=tuple(sorted(names for _, names in found)))
        for found in branches.values()
        if len(found) > 1
    ]
    return tuple(sorted(forks, key=lambda fork: (fork.offset, fork.branches)))


def _node(
    name: str, vector: tuple[LineageSegment, ...], found: tuple[Difference, ...], start: int, end: int
) -> Node | None:
    """Return the replica's piece [start, end); None if it has none there."""
    segment = next((s for s in vector if s.start <= start and end <= s.end), None)
    for difference in found:
        if difference.first <= start and end <= difference.end:
            holding = next((h for h in difference.holdings if h.replica == name), None)
            if holding is None or segment is None:
                return None
            if holding.group is None:
                return Node(epoch=None, start=start, end=end)
            return Node(epoch=segment.epoch, start=start, end=end, group=holding.group)
    return None if segment is None else Node(epoch=segment.epoch, start=start, end=end)


def _add(graph: Graph, name: str, before: Node | None, node: Node) -> None:
    """Add a replica's piece to the graph, after its previous piece."""
    graph.add_node(node)
    graph.nodes[node].setdefault("replicas", set()).add(name)
    if before is not None:
        graph.add_edge(before, node)
        graph.edges[before, node].setdefault("replicas", set()).add(name)
