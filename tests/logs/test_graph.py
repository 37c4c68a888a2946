"""In the lineage graph, replicas that agree share nodes, and forks show where they diverge."""

from __future__ import annotations

from harness.logs.graph import Node, fork_points, lineage_graph
from harness.logs.replica import ReplicaLog
from tests.logs.replicas import replica, seen


def forks(**logs: ReplicaLog) -> list[tuple[int, tuple[tuple[str, ...], ...]]]:
    """Return (offset, branches) of every fork."""
    return [(fork.offset, fork.branches) for fork in fork_points(lineage_graph(logs))]


def test_lineage_graph_is_one_path_when_replicas_are_equal() -> None:
    log = replica(seen(0, "a b"), seen(2, "c", epoch=1))
    graph = lineage_graph({"A": log, "B": log})
    first, second = Node(epoch=0, start=0, end=2), Node(epoch=1, start=2, end=3)
    assert [(first, second)] == list(graph.edges)
    assert [{"A", "B"}] * 3 == [
        graph.nodes[first]["replicas"],
        graph.nodes[second]["replicas"],
        graph.edges[first, second]["replicas"],
    ]
    assert () == fork_points(graph)


def test_lineage_graph_parts_and_joins_when_the_middle_alone_differs() -> None:
    """Source: KAFKA-6880: tails agree, a middle does not."""
    a = replica(seen(0, "a"), seen(1, "b"), seen(2, "c", epoch=1))
    b = replica(seen(0, "a"), seen(1, "x"), seen(2, "c", epoch=1))
    graph = lineage_graph({"A": a, "B": b})
    assert 4 == len(graph)
    assert {"A", "B"} == graph.nodes[Node(epoch=1, start=2, end=3)]["replicas"]
    assert [(1, (("A",), ("B",)))] == forks(A=a, B=b)


def test_fork_points_tell_who_goes_where_when_three_replicas_part_in_one_epoch() -> None:
    a, b, c = (replica(seen(0, text)) for text in ("a b", "a x", "a x"))
    assert [(1, (("A",), ("B", "C")))] == forks(A=a, B=b, C=c)


def test_fork_points_show_a_hole_as_a_branch() -> None:
    assert [(1, (("A",), ("B",)))] == forks(A=replica(seen(0, "a b c")), B=replica(seen(0, "a"), seen(2, "c")))


def test_fork_points_show_the_start_when_nothing_is_shared() -> None:
    assert [(0, (("A",), ("B",)))] == forks(A=replica(seen(0, "a")), B=replica(seen(0, "x")))


def test_fork_points_are_none_when_a_replica_is_behind_or_begins_later() -> None:
    full = replica(seen(0, "a b c"), seen(3, "d", epoch=1))
    assert [] == forks(A=full, B=replica(seen(0, "a b")))
    assert [] == forks(A=full, B=replica(seen(0, "a b c"), seen(3, "d", epoch=1), start=2))
    assert [] == forks(A=full, B=replica(seen(0, "a b"), seen(3, "d", epoch=1), unread=((2, 3),)))
    assert [] == forks(A=replica(), B=replica())
