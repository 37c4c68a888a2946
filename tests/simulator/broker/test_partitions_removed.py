"""
Partitions that steps remove and add again, on a simulated cluster: what is asked, recorded, left and judged.

Source:  Kafka Replication Design V3, Paths 6 and on_partitions_remove.
"""

from __future__ import annotations

import pytest

from harness.events import AddPartitions, Batch, RemovePartitions, Setup, Step
from harness.model import Kind, Op, OpType, UsageError, events_of
from harness.run.result import RunResult, Status
from harness.run.spec import RunSpec
from harness.scenario.file import Scenario, draw, parse
from harness.scenario.variant import Variant
from harness.search.simulated import play_in_memory, sim_player
from targets import VIRTUAL_HOST as SIM
from targets.broker_target.target import TARGET
from tests.faults import NEMESES

HEAD = """title    T
source   S
nodes    A B replicas, C controller
partition orders-0 A B
partition orders-1 A B
partition orders-2 B A
records  m1 1, m2 2, m3 3, m4 1, m5 2
"""
FIRST = (
    "produce m1 acks=all",
    "produce m2 acks=all of orders-0",
    "produce m3 acks=all of orders-1",
    "produce m4 acks=all of orders-2",
)
NOT_THERE = "it is not there; expected one that is"


def scenario_of(*steps: str) -> Scenario:
    return parse("s", "\n".join((HEAD, *FIRST, *steps, "expect kip380: none", "")), "s.txt", NEMESES)


def play(*steps: str) -> tuple[RunResult, list[Op]]:
    """Play these steps after some records of each partition, and judge the run."""
    scenario, variant = scenario_of(*steps), Variant(protocol="kip380")
    rules = TARGET.rules(variant.protocol, ())
    drawn = draw(scenario, 1)
    spec = RunSpec(
        target=TARGET.name,
        host=SIM,
        variant=variant,
        rules=rules,
        traits=TARGET.traits(variant.protocol, ()),
        scenario=scenario,
        draw=drawn,
    )
    return play_in_memory(sim_player(TARGET), spec)


def asked(ops: list[Op]) -> list[tuple[str, OpType]]:
    found = sorted(
        (*events_of(ops, RemovePartitions), *events_of(ops, AddPartitions)), key=lambda each: each[0].index
    )
    return [(op.f, op.type) for op, _ in found]


def left(ops: list[Op], partition: int) -> set[str]:
    """Return the records of a partition of orders in the final logs."""
    batches = (
        batch for _, batch in events_of(ops, Batch) if (batch.topic, batch.partition) == ("orders", partition)
    )
    return {value for batch in batches for _, _, value in batch.records if value is not None}


def failed(ops: list[Op]) -> str:
    return next(step.error for op, step in events_of(ops, Step) if op.type is OpType.FAIL)


def test_what_is_removed_goes_with_its_records_and_nothing_is_lost() -> None:
    """V3, on_partitions_remove, 1 to 4."""
    result, ops = play("remove orders-1")
    assert Status.AS_EXPECTED is result.status
    assert [("remove-partitions", OpType.INVOKE), ("remove-partitions", OpType.OK)] == asked(ops)
    assert ({"m2.0", "m2.1"}, set(), set()) == (left(ops, 0), left(ops, 1), left(ops, 2))
    (setup,) = [each for _, each in events_of(ops, Setup)]
    assert ("orders-1", "orders-2") == setup.removed


def test_what_is_added_again_has_its_own_records_alone() -> None:
    """V3, discussion 5."""
    result, ops = play("remove orders-1", "add orders-2", "produce m5 acks=all of orders-1")
    assert Status.AS_EXPECTED is result.status
    assert ({"m5.0", "m5.1"}, set()) == (left(ops, 1), left(ops, 2))
    added = next(event for op, event in events_of(ops, AddPartitions) if op.type is OpType.OK)
    assert (1, (("A", "B"), ("B", "A"))) == (added.first, added.assignments)


def test_only_the_highest_goes_where_one_is_named_and_the_other_lasts() -> None:
    result, ops = play("remove orders-2", "add orders-2", "remove orders-2")
    assert Status.AS_EXPECTED is result.status
    assert {"m3.0", "m3.1", "m3.2"} == left(ops, 1)
    assert set() == left(ops, 2)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (("remove orders-1", "remove orders-2"), f"remove orders-2: {NOT_THERE}"),
        (
            ("remove orders-2", "add orders-1"),
            "add orders-1: the topic has 2 partitions; expected fewer, and one at least",
        ),
    ],
)
def test_step_that_asks_for_what_is_so_already_fails_and_asks_for_nothing(
    steps: tuple[str, ...], told: str
) -> None:
    result, ops = play(*steps)
    assert (told, 2) == (failed(ops), len(asked(ops)))
    assert Status.UNKNOWN is result.status


def test_removal_that_nobody_carries_out_may_still_happen_and_what_is_left_is_lawful() -> None:
    result, ops = play("pause C", "remove orders-1")
    assert [("remove-partitions", OpType.INVOKE), ("remove-partitions", OpType.INFO)] == asked(ops)
    assert "orders has [1, 2]; expected them to be gone" in failed(ops)
    assert {Kind.UNCHECKED} == {each.kind for each in result.anomalies}


def test_addition_that_a_broker_refuses_adds_nothing() -> None:
    """Kafka's rule: the brokers of an assignment must live."""
    _, ops = play("remove orders-2", "kill B", "expire B", "await isr = A", "add orders-2")
    (refused,) = [event for op, event in events_of(ops, AddPartitions) if op.type is OpType.FAIL]
    assert refused.error.startswith("INVALID_REPLICA_ASSIGNMENT")
    assert set() == left(ops, 2)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("remove orders-0", "orders-0: a topic's first partition stays; expected another"),
        ("remove orders-3", "expected a further partition of the head"),
        ("add orders-1", "no step above removes partitions of orders"),
    ],
)
def test_step_that_can_never_work_is_a_wrong_use(step: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        scenario_of(step)


def test_partitions_that_steps_remove_are_those_named_and_those_above() -> None:
    assert ["orders-1", "orders-2"] == [str(place) for place in scenario_of("remove orders-1").removed]
    assert ["orders-2"] == [str(place) for place in scenario_of("remove orders-2").removed]
    assert () == scenario_of().removed
