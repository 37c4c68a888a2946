"""Halves, surroundings and rings are the right sets of links, whatever the number of nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.cluster.link_fault import across_the_ring, around, half_of
from harness.model import PreconditionError


def of(names: str, *linked: str) -> Any:
    services = SimpleNamespace(linked=linked) if linked else None
    return SimpleNamespace(ids=dict.fromkeys(names, 0), services=services)


@pytest.mark.parametrize(
    ("names", "node", "half"),
    [("AB", "B", "B"), ("ABC", "B", "B"), ("ABCD", "D", "DA"), ("ABCDE", "B", "BC")],
)
def test_half_begins_with_the_node_and_is_the_smaller_one(names: str, node: str, half: str) -> None:
    assert [*half] == half_of(of(names), node)


def test_links_around_a_node_go_both_ways() -> None:
    assert {("A", "B"), ("B", "A"), ("A", "C"), ("C", "A")} == set(around(of("ABC"), "A"))


def test_links_around_a_node_lead_to_the_services_that_are_linked_too() -> None:
    nodes = {("A", "B"), ("B", "A")}
    assert nodes | {("A", "office-1"), ("office-1", "A")} == set(around(of("AB", "office-1"), "A"))


@pytest.mark.parametrize("names", ["ABCD", "ABCDE", "ABCDEF"])
def test_in_a_ring_each_node_reaches_its_two_neighbours_alone(names: str) -> None:
    cut = set(across_the_ring(of(names), "A"))
    for place, name in enumerate(names):
        reached = {other for other in names if other != name and (name, other) not in cut}
        assert {names[place - 1], names[(place + 1) % len(names)]} == reached


def test_of_three_each_reaches_the_next_one_alone() -> None:
    assert {("B", "A"), ("C", "B"), ("A", "C")} == set(across_the_ring(of("ABC"), "A"))


def test_two_nodes_make_no_ring() -> None:
    with pytest.raises(PreconditionError, match="partition-ring A: 2 nodes; expected three at least"):
        across_the_ring(of("AB"), "A")
