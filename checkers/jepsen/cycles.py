"""
Cycles of dependencies, named as Elle names them.

Elle asks of each strongly connected component of all dependencies which isolation levels it breaks, and names only
the weakest, each with one cycle. Real time has an edge from each completion to each later invocation, which are
quadratically many; here a chain of barriers, one after each `ok` completion, stands for them.

Source: elle.txn, cycle-exists-specs and cycle-anomaly-specs; Adya, Weak Consistency, for G0, G1c, PL-1 and PL-2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final, TypeAlias

import networkx

from checkers.jepsen.edges import Edge, Edges, find_edges
from checkers.jepsen.facts import Facts
from checkers.jepsen.finding import Finding
from checkers.jepsen.history import OK, Op

Graph: TypeAlias = Any  # a networkx.DiGraph of int; the package has no types

# A shortest cycle is sought through so many operations of a component; it need not be the shortest of all.
_STARTS_MAX: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """
    An isolation level, which has no cycle of certain edges.

    Attributes:
        name: Adya's.
        friendly: its name in SQL, as Elle has it.
        edges: the kinds of edges that have no cycle.
        implied_by: if one of these is broken, this one is too, and is not named.
    """

    name: str
    friendly: str
    edges: tuple[str, ...]
    implied_by: tuple[str, ...] = ()


LEVELS: Final = (
    Level(name="PL-1", friendly="read-uncommitted", edges=("ww",)),
    Level(name="PL-2", friendly="read-committed", edges=("ww", "wr"), implied_by=("PL-1",)),
    Level(
        name="strong-PL-1",
        friendly="strong-read-uncommitted",
        edges=("ww", "realtime"),
        implied_by=("PL-1",),
    ),
    Level(
        name="strong-PL-2",
        friendly="strong-read-committed",
        edges=("ww", "wr", "realtime"),
        implied_by=("PL-1", "PL-2", "strong-PL-1"),
    ),
)


def find_cycles(facts: Facts, *, ww_deps: bool) -> Iterator[Finding]:
    """
    Yield of each component the weakest levels that it breaks, each with one cycle; or that there is no edge at all.

    Args:
        ww_deps: whether there are ww edges.

    Raises:
        CheckerCrashError: a value was polled that nobody is known to have sent.
    """
    edges = find_edges(facts, ww_deps=ww_deps)
    if not edges.ww and not edges.wr and not edges.real_time:
        yield Finding(kind="empty-transaction-graph")
        return
    ops = _suspects(facts, edges)
    if not ops:
        return
    graph = networkx.DiGraph()
    graph.add_edges_from(_among(edges.ww | edges.wr, ops))
    graph.add_edges_from(_barriers(ops.values()))
    for component in _components(graph):
        yield from _in_component(facts, edges, {index: ops[index] for index in component if index >= 0}, graph)


def _suspects(facts: Facts, edges: Edges) -> dict[int, Op]:
    """
    Return the operations that may be in a cycle, by index, in order.

    Real time and most edges lead from an earlier completion to a later one. So every step of a cycle's way to its
    first completion is within an edge that leads backward; what lies within none is in no cycle.
    """
    change: dict[int, int] = {}
    for later, earlier in edges.backward():
        change[earlier] = change.get(earlier, 0) + 1
        change[later + 1] = change.get(later + 1, 0) - 1
    if not change:
        return {}
    places = sorted(change)
    depths = [*accumulate(change[place] for place in places)]
    found: dict[int, Op] = {}
    at, depth = 0, 0
    for op in facts.transactions:
        while at < len(places) and places[at] <= op.index:
            depth = depths[at]
            at += 1
        if depth:
            found[op.index] = op
    return found


def _among(edges: Iterable[Edge], ops: Mapping[int, Op]) -> Iterator[Edge]:
    return (edge for edge in edges if edge[0] in ops and edge[1] in ops)


def _barriers(ops: Iterable[Op]) -> Iterator[Edge]:
    """
    Yield real time as edges: from each `ok` completion to its barrier, from there to the next, and to what is invoked.

    The barrier of an operation is -1 minus its index.
    """
    events: list[tuple[int, Op]] = []
    for op in ops:
        assert op.invocation is not None, "facts pair each completion with its invocation"
        events.append((op.invocation.index, op))
        if op.type == OK:
            events.append((op.index, op))
    barrier = 0
    for place, op in sorted(events, key=lambda event: event[0]):
        if place != op.index:
            if barrier:
                yield barrier, op.index
            continue
        if barrier:
            yield barrier, -1 - place
        barrier = -1 - place
        yield op.index, barrier


def _components(graph: Graph) -> list[set[int]]:
    """Return the components that have a cycle, the smallest first."""
    found = [each for each in networkx.strongly_connected_components(graph) if len(each) > 1]
    return sorted(found, key=lambda each: (sum(node >= 0 for node in each), max(each)))


def _in_component(facts: Facts, edges: Edges, ops: Mapping[int, Op], graph: Graph) -> Iterator[Finding]:
    """Yield the weakest levels that a component breaks, and a cycle of each."""
    broken: set[str] = set()
    ww, wr = set(_among(edges.ww, ops)), set(_among(edges.wr, ops))
    of_kind = {"ww": ww, "wr": wr, "realtime": [*_barriers(ops[index] for index in sorted(ops))]}
    for level in LEVELS:
        if broken.intersection(level.implied_by):
            continue
        within = networkx.DiGraph()
        for kind in level.edges:
            within.add_edges_from(of_kind[kind])
        components = _components(within)
        if not components:
            continue
        broken.add(level.name)
        smallest = sorted(index for index in components[0] if index >= 0)
        yield Finding(
            kind=f"{level.name}-cycle-exists",
            ops=tuple(ops[index] for index in smallest),
            more={"not": level.friendly, "subgraph": ["union", *level.edges]},
        )
        cycle = _cycle(within.subgraph(components[0]), smallest)
        yield _named(facts, [ops[index] for index in cycle], ww, wr)


def _cycle(graph: Graph, starts: Sequence[int]) -> list[int]:
    """Return a short cycle of a component as operations, whose first is also its last."""
    best: list[int] = []
    for start in starts[:_STARTS_MAX]:
        found = _shortest_back(graph, start)
        operations = [node for node in found if node >= 0]
        if not best or len(operations) < len(best):
            best = operations
        if len(best) == 3:
            break
    return best


def _shortest_back(graph: Graph, start: int) -> list[int]:
    """Return a shortest way from a node to itself; in a component there is one."""
    came_from: dict[int, int] = {}
    frontier = [start]
    while start not in came_from:
        following: list[int] = []
        for node in frontier:
            for after in graph[node]:
                if after not in came_from:
                    came_from[after] = node
                    following.append(after)
        frontier = following
    way = [start]
    node = came_from[start]
    while node != start:
        way.append(node)
        node = came_from[node]
    return [start, *reversed(way[1:]), start]


def _named(facts: Facts, cycle: list[Op], ww: set[Edge], wr: set[Edge]) -> Finding:
    """
    Return a cycle under the name that its steps give it.

    A step that is an edge of several kinds is explained as ww before wr, and as wr before real time.
    """
    steps = [_step(facts, one, two, ww, wr) for one, two in pairwise(cycle)]
    kinds = {step["type"] for step in steps}
    name = ("G1c" if "wr" in kinds else "G0") + ("-realtime" if "realtime" in kinds else "")
    return Finding(kind=name, ops=tuple(cycle), more={"steps": steps})


def _step(facts: Facts, one: Op, two: Op, ww: set[Edge], wr: set[Edge]) -> dict[str, Any]:
    """Return why one operation comes before another."""
    edge = (one.index, two.index)
    if edge in ww:
        for key in two.sends:
            log = facts.log(key)
            for value in two.sent(key):
                index = log.index.get(value, 0)
                if index and facts.writer(key, log.order[index - 1]) is one:
                    return {"type": "ww", "key": key, "value": log.order[index - 1], "value'": value}
    if edge in wr:
        for key in two.polls:
            for value in two.polled(key):
                if facts.writer(key, value) is one:
                    return {"type": "wr", "key": key, "value": value}
    assert two.invocation is not None, "facts pair each completion with its invocation"
    return {"type": "realtime", "a'": one.to_dict(), "b": two.invocation.to_dict()}
