"""
Cycles of dependencies, named as Elle names them.

Elle asks of each strongly connected component of all dependencies which isolation levels it breaks, and names only
the weakest, each with one cycle.

Source: elle.txn, cycle-exists-specs and cycle-anomaly-specs; Adya, Weak Consistency, for G0, G1c, PL-1 and PL-2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

from checkers.jepsen import edges
from checkers.jepsen.edges import Edge
from checkers.jepsen.facts import Facts
from checkers.jepsen.finding import Finding
from checkers.jepsen.history import OK, Op

Graph: TypeAlias = Any  # a networkx.DiGraph of int; the package has no types

# A shortest cycle is sought through one operation of a component after another until so many nodes were visited;
# the one that is shown need not be the shortest of all.
_VISITS_MAX: Final = 100_000


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


class Cycles:
    """
    Finds the cycles of a history, with ww edges and without.

    Args:
        facts: of the history.

    Raises:
        CheckerCrashError: a value was polled that nobody is known to have sent.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._wr_found, self._wr_backward = _scanned(edges.wr(facts, facts.transactions))
        self._real_time = edges.any_real_time(facts)

    def find(self, *, ww_deps: bool) -> Iterator[Finding]:
        """
        Yield of each component the weakest levels that it breaks, each with one cycle; or that there are no edges.

        Args:
            ww_deps: whether there are ww edges.

        Raises:
            CheckerCrashError: a value that precedes another was polled, and nobody is known to have sent it.
        """
        facts = self._facts
        ww_found, ww_backward = _scanned(edges.ww(facts, facts.transactions)) if ww_deps else (False, [])
        if not ww_found and not self._wr_found and not self._real_time:
            yield Finding(kind="empty-transaction-graph")
            return
        ops = edges.suspects(facts, [*self._wr_backward, *ww_backward])
        if not ops:
            return
        parts = _Parts(facts=facts, ops=ops, ww_deps=ww_deps)
        graph = parts.graph(("ww", "wr", "realtime"))
        for component in _components(graph):
            within = {index: ops[index] for index in sorted(component) if index >= 0}
            yield from _in_component(_Parts(facts=facts, ops=within, ww_deps=ww_deps), graph, component)


def _scanned(found: Iterable[Edge]) -> tuple[bool, list[Edge]]:
    """Return whether there is an edge at all, and those that lead from a completion to an earlier one."""
    backward: list[Edge] = []
    any_edge = False
    for edge in found:
        any_edge = True
        if edge[0] > edge[1]:
            backward.append(edge)
    return any_edge, backward


class _Parts:
    """The edges among some operations, by kind."""

    def __init__(self, *, facts: Facts, ops: Mapping[int, Op], ww_deps: bool) -> None:
        self.facts = facts
        self.ops = ops
        self.ww = {edge for edge in edges.ww(facts, ops.values()) if edge[0] in ops} if ww_deps else set()
        self.wr = {edge for edge in edges.wr(facts, ops.values()) if edge[0] in ops}

    def may_break(self, level: Level) -> bool:
        """Return False if no edge of a level leads back in time, without which there is no cycle."""
        found = {"ww": self.ww, "wr": self.wr}
        return any(one > two for kind in level.edges for one, two in found.get(kind, ()))

    def graph(self, kinds: Sequence[str]) -> Graph:
        """Return the graph of the edges of some kinds; with real time, without the edges that it implies."""
        import networkx  # a quarter of a second, which commands without a graph do not wait for

        made = networkx.DiGraph()
        in_time = "realtime" in kinds
        for of_kind in (self.ww if "ww" in kinds else (), self.wr if "wr" in kinds else ()):
            made.add_edges_from(edge for edge in of_kind if not (in_time and self._implied(edge)))
        if in_time:
            made.add_edges_from(edges.real_time(self.ops.values()))
        return made

    def _implied(self, edge: Edge) -> bool:
        one, two = self.ops[edge[0]], self.ops[edge[1]]
        return one.type == OK and two.invocation is not None and one.index < two.invocation.index


def _components(graph: Graph) -> list[set[int]]:
    """Return the components that have a cycle, the smallest first."""
    import networkx

    found = [each for each in networkx.strongly_connected_components(graph) if len(each) > 1]
    return sorted(found, key=lambda each: (sum(node >= 0 for node in each), max(each)))


def _in_component(parts: _Parts, whole: Graph, component: set[int]) -> Iterator[Finding]:
    """Yield the weakest levels that a component of the whole graph breaks, and a cycle of each."""
    broken: set[str] = set()
    for level in LEVELS:
        if broken.intersection(level.implied_by) or not parts.may_break(level):
            continue
        if level is LEVELS[-1]:
            graph, components = whole, [component]
        else:
            graph = parts.graph(level.edges)
            components = _components(graph)
        if not components:
            continue
        broken.add(level.name)
        smallest = sorted(index for index in components[0] if index >= 0)
        yield Finding(
            kind=f"{level.name}-cycle-exists",
            ops=tuple(parts.ops[index] for index in smallest),
            more={"not": level.friendly, "subgraph": ["union", *level.edges]},
        )
        cycle = _cycle(graph, components[0], smallest)
        yield _named(parts, [parts.ops[index] for index in cycle])


def _cycle(graph: Graph, component: set[int], starts: Sequence[int]) -> list[int]:
    """Return a short cycle of a component as operations, whose first is also its last."""
    best: list[int] = []
    visits_left = _VISITS_MAX
    for start in starts:
        found, visited = _shortest_back(graph, component, start)
        visits_left -= visited
        if not best or len(found) < len(best):
            best = found
        # Two operations are the shortest cycle that there can be.
        if len(best) == 3 or visits_left <= 0:
            break
    return best


def _shortest_back(graph: Graph, component: set[int], start: int) -> tuple[list[int], int]:
    """Return a way from an operation to itself with few operations, and how many nodes were visited."""
    came_from: dict[int, int] = {}
    waiting = deque([start])
    while start not in came_from:
        node = waiting.popleft()
        for after in graph[node]:
            if after in came_from or after not in component:
                continue
            came_from[after] = node
            # A barrier is no step: it is as near as the operation that leads to it.
            if after >= 0:
                waiting.append(after)
            else:
                waiting.appendleft(after)
    way, node = [start], came_from[start]
    while node != start:
        if node >= 0:
            way.append(node)
        node = came_from[node]
    return [start, *reversed(way[1:]), start], len(came_from)


def _named(parts: _Parts, cycle: list[Op]) -> Finding:
    """
    Return a cycle under the name that its steps give it.

    A step that is an edge of several kinds is explained as ww before wr, and as wr before real time.
    """
    steps = [_step(parts, one, two) for one, two in pairwise(cycle)]
    kinds = {step["type"] for step in steps}
    name = ("G1c" if "wr" in kinds else "G0") + ("-realtime" if "realtime" in kinds else "")
    return Finding(kind=name, ops=tuple(cycle), more={"steps": steps})


def _step(parts: _Parts, one: Op, two: Op) -> dict[str, Any]:
    """Return why one operation comes before another."""
    facts = parts.facts
    if (one.index, two.index) in parts.ww:
        for key in two.sends:
            log = facts.log(key)
            for value in two.sent(key):
                index = log.index.get(value, 0)
                if index and facts.writer(key, log.order[index - 1]) is one:
                    return {"type": "ww", "key": key, "value": log.order[index - 1], "value'": value}
    if (one.index, two.index) in parts.wr:
        for key in two.polls:
            for value in two.polled(key):
                if facts.writer(key, value) is one:
                    return {"type": "wr", "key": key, "value": value}
    assert two.invocation is not None, "facts pair each completion with its invocation"
    return {"type": "realtime", "a'": one.to_dict(), "b": two.invocation.to_dict()}
