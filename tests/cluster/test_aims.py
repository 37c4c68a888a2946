"""Aims: which nodes a word means when its step's turn comes, and that the history names the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.cluster.aims import AIMS, SERVICE
from harness.events import Injection
from harness.events import Step as StepEvent
from harness.model import Op, OpType, UsageError, events_of
from harness.scenario.grammar import Line, Names
from harness.scenario.steps import STEPS, Inject
from tests.faults import NEMESES
from tests.nemesis.simulated import played

NAMES = Names(nodes=("A", "B", "C"), groups=("m1",), faults=NEMESES)


def hit(ops: Sequence[Op], fault: str) -> list[tuple[str, ...]]:
    return [
        tuple(each.nodes) for op, each in events_of(ops, Injection) if each.name == fault and op.type is OpType.OK
    ]


def error(ops: Sequence[Op]) -> str:
    return next(each.error for op, each in events_of(ops, StepEvent) if op.type is OpType.FAIL)


@pytest.mark.parametrize(
    ("aim", "nodes"),
    [
        ("leader", [("A",)]),
        ("follower", [("B",)]),
        ("controller", [("C",)]),
        ("minority", [("A",), ("B",)]),
        ("majority", [("A", "B")]),
        ("one", [("A",), ("B",), ("C",)]),
        ("all", [("C", "A", "B")]),
    ],
)
def test_aim_means_nodes_when_its_step_comes(aim: str, nodes: list[tuple[str, ...]]) -> None:
    _, ops = played(f"aim-{aim}", f"produce m1 acks=all\npause {aim}\nresume all\n")
    (found,) = hit(ops, "pause")
    assert found in nodes
    assert [found] == hit(ops, "resume"), "all under the effect"


def test_every_aim_is_tried() -> None:
    tried = {"leader", "follower", "controller", "minority", "majority", "one", "all", "last-in-isr"}
    assert tried == AIMS.keys() - {SERVICE}  # tests/nemesis/test_services.py


def test_last_member_of_the_isr_is_meant_once_the_others_have_left() -> None:
    _, ops = played("last", "produce m1 acks=all\nkill last-in-isr\n")
    assert error(ops) == "kill last-in-isr: there is none now; expected one among C, A, B"
    _, ops = played("last", "produce m1 acks=all\nkill B\nexpire B\nawait isr = A\nkill last-in-isr\n")
    assert [("B",), ("A",)] == hit(ops, "kill")


def test_aim_moves_with_the_leader() -> None:
    _, ops = played("moves", "produce m1 acks=all\nelect B\nawait leader = B\npause leader\nresume leader\n")
    assert [("B",)] == hit(ops, "pause")


def test_healing_has_no_aim_where_nothing_is_to_heal() -> None:
    _, ops = played("none", "produce m1 acks=all\nresume all\n")
    assert error(ops) == "resume all: there is none now; expected one among no node"


def test_aim_prints_as_it_is_read_and_stands_alone() -> None:
    step = Line("pause leader", "line 1", NAMES).read(STEPS)
    assert isinstance(step, Inject)
    assert ("leader", "pause leader") == (step.aim, str(step))
    with pytest.raises(UsageError, match="leader among others; expected an aim alone, or nodes"):
        Line("pause A leader", "line 1", NAMES).read(STEPS)
    with pytest.raises(UsageError, match="expected a node or an aim: one of A, B, C, leader"):
        Line("pause leadr", "line 1", NAMES).read(STEPS)
