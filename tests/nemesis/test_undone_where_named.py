"""A fault is undone where it is named: on the other nodes it stays in force."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.ability import Ability
from harness.cluster.fault import Fault
from harness.events import Injection
from harness.model import Op, OpType, events_of
from tests.faults import NEMESES
from tests.nemesis.simulated import played, refused

M1 = "produce m1 acks=all\n"
# Two followers, each with a leader of its own, so that a fault of either bites.
_NODES = "A B C E replicas, D controller"
_HEAD = "partition orders-0 C E"
# They are about the links of all nodes, whichever one is named: a second one takes no frame that the first left.
_OF_ALL = ("partition-brokers", "partition-halves", "partition-ring")


def _undoing(fault: Fault) -> Fault | None:
    return next((each for each in NEMESES.values() if fault.heal is not None and each.inject == fault.heal), None)


PAIRS = [
    pytest.param(name, by.name, id=name)
    for name, fault in NEMESES.items()
    if (by := _undoing(fault)) is not None and fault.effect.lasts and not fault.everywhere and name not in _OF_ALL
    if {*fault.needs} <= {Ability.BIT_ROT, Ability.METADATA_LINKS}
]


def undone(ops: Sequence[Op], by: str) -> list[tuple[str, ...]]:
    """Return the nodes of each injection of a fault that undoes others, in order."""
    return [each.nodes for op, each in events_of(ops, Injection) if each.name == by and op.type is OpType.OK]


@pytest.mark.parametrize(("fault", "by"), PAIRS)
def test_fault_stays_in_force_on_the_node_that_is_not_named(fault: str, by: str) -> None:
    _, ops = played("two", f"{M1}{fault} B\n{fault} E\n{by} B\n", nodes=_NODES, head=_HEAD)
    assert "" == (refused(ops, fault) or refused(ops, by))
    # The second is what the end of the run had to undo.
    found = undone(ops, by)
    assert [("B",), ("E",)] == found[:2]


def test_broker_stays_cut_from_zookeeper_when_the_servers_are_back() -> None:
    steps = f"{M1}cut-from-metadata B\nzookeeper-outage A\nzookeeper-back A\nawait gone B\n"
    _, ops = played("both", steps, nodes=_NODES)
    assert [("D", "A", "C", "E"), ("B",)] == undone(ops, "zookeeper-back")


def test_both_are_undone_where_both_are_named() -> None:
    steps = f"{M1}cut-from-metadata B\nzookeeper-outage A\nzookeeper-back A B\nawait isr = A B C\n"
    _, ops = played("both", steps, nodes=_NODES)
    assert [("D", "A", "B", "C", "E")] == undone(ops, "zookeeper-back")


def test_broker_that_reaches_zookeeper_cannot_be_given_back_what_another_lacks() -> None:
    _, ops = played("other", f"{M1}cut-from-metadata B\nzookeeper-back A\n", nodes=_NODES)
    assert "A reaches the metadata; expected a fault that parts it from them" == refused(ops, "zookeeper-back")
