"""
Merge the lineages of a partition's replicas into one graph, in which replicas that agree share nodes.

A node is a piece of lineage (leader epoch, start, end). Pieces end wherever a replica's epoch changes, or a log
or a disagreement begins or ends. Nodes are segments, not records, and stay few. Histories fork where more than
one piece follows a shared piece.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

from harness.logs.lineage import Difference, LineageSegment, differences, lineage
from harness.logs.replica import ReplicaLog

Graph: TypeAlias = Any  # a networkx.DiGraph of Node; the package has no types
T = TypeVar("T")


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
    return graph_of(logs, {name: lineage(log) for name, log in logs.items()}, differences(logs))


def graph_of(
    logs: Mapping[str, ReplicaLog],
    vectors: Mapping[str, Sequence[LineageSegment]],
    found: Sequence[Difference],
) -> Graph:
    """Return the graph of logs whose lineages and differences are known; the logs' batches are not used."""
    cuts = {bound for log in logs.values() for bound in (log.log_start_offset, log.log_end_offset)}
    cuts |= {bound for each in found for bound in (each.first, each.end)}
    cuts |= {bound for vector in vectors.values() for s in vector for bound in (s.start, s.end)}
    bounds = sorted(cuts)
    differing = _by_piece(bounds, found, lambda each: (each.first, each.end))
    import networkx  # a quarter of a second, which commands without a graph do not wait for

    graph = networkx.DiGraph()
    for name, vector in vectors.items():
        segments = _by_piece(bounds, vector, lambda each: (each.start, each.end))
        before: Node | None = None
        for piece, (start, end) in enumerate(pairwise(bounds)):
            node = _node(name, segments.get(piece), differing.get(piece), start, end)
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


def _by_piece(bounds: list[int], ranges: Iterable[T], range_of: Callable[[T], tuple[int, int]]) -> dict[int, T]:
    """Return piece -> the first range that covers it; piece i lies between the bounds i and i + 1."""
    found: dict[int, T] = {}
    # The next piece that no range covers yet, from each piece on: ranges of a log in disorder overlap.
    free = list(range(len(bounds) + 1))
    for each in ranges:
        first, end = range_of(each)
        piece, stop = _next_free(free, bisect_left(bounds, first)), bisect_left(bounds, end)
        while piece < stop:
            found[piece] = each
            free[piece] = piece + 1
            piece = _next_free(free, piece)
    return found


def _next_free(free: list[int], piece: int) -> int:
    while free[piece] != piece:
        free[piece] = free[free[piece]]
        piece = free[piece]
    return piece


def _node(
    name: str, segment: LineageSegment | None, difference: Difference | None, start: int, end: int
) -> Node | None:
    """Return the replica's piece [start, end); None if it has none there."""
    if segment is None:
        return None
    if difference is None:
        return Node(epoch=segment.epoch, start=start, end=end)
    holding = next((h for h in difference.holdings if h.replica == name), None)
    if holding is None:
        return None
    if holding.group is None:
        return Node(epoch=None, start=start, end=end)
    return Node(epoch=segment.epoch, start=start, end=end, group=holding.group)


def _add(graph: Graph, name: str, before: Node | None, node: Node) -> None:
    """Add a replica's piece to the graph, after its previous piece."""
    graph.add_node(node)
    graph.nodes[node].setdefault("replicas", set()).add(name)
    if before is not None:
        graph.add_edge(before, node)
        graph.edges[before, node].setdefault("replicas", set()).add(name)
