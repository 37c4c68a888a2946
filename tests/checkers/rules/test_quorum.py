"""Losses of groups of which a majority has what is committed: what sentences say, and edges of the formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.facts.quorum import Promised, standing_of
from checkers.facts.view import final_logs, other_stores
from checkers.rules.caught_up import caught_up
from checkers.rules.diverged import diverged
from checkers.rules.isr import isr
from checkers.rules.lost import lost
from harness.model import Kind, Op, OpType, Source
from tests.checkers.group import MADE, RUNS, TRAITS, Group, text_of
from tests.checkers.plants.table import PLANTS

_ASKED, _TOLD = 2, 3


def group(members: str, hit: str = "", effect: str = "power-lost", type_: OpType = OpType.OK) -> list[Op]:
    """Return a group that acknowledges a record, after which faults hit some of its members."""
    story = Group(members).leads("A", 1, ms=10).acked("m1", "m1.0", 1, ms=1_000)
    for node in hit:
        fault(story, node, effect, type_)
    return story.ops


def fault(story: Group, node: str, effect: str, type_: OpType = OpType.OK) -> None:
    """Add a fault of a node, with its end."""
    value: dict[str, Any] = {"nodes": [node], "effect": effect, "band": "mark"}
    told = {"probe": "seen"} if type_ is OpType.OK else {"error": "not known"}
    story._add(2_000, Source.NEMESIS, "hit", OpType.INVOKE, "nemesis", **value)
    story._add(2_001, Source.NEMESIS, "hit", type_, "nemesis", **value, **told)


def is_lawful(ops: list[Op]) -> bool:
    return standing_of(ops, Promised(offset=1, asked=_ASKED, told=_TOLD)).lawful


@pytest.mark.parametrize(
    ("members", "lawful"), [("A", 1), ("AB", 2), ("ABC", 1), ("ABCD", 2), ("ABCDE", 1), ("ABCDEF", 2)]
)
def test_loss_is_lawful_once_those_that_may_lack_it_can_be_a_majority(members: str, lawful: int) -> None:
    found = [is_lawful(group(members, members[:robbed])) for robbed in range(lawful + 1)]
    assert [False] * lawful + [True] == found


@pytest.mark.parametrize(
    ("effect", "taken"),
    [
        ("power-lost", True),
        ("pages-lost", True),
        ("disk-gone", True),
        ("disk-lost", True),
        ("log-cut", True),
        ("bit-rot", True),
        ("down", False),
        ("paused", False),
        ("partitioned", False),
        ("clock-wrong", False),
    ],
)
def test_only_a_fault_that_takes_records_excuses_a_loss(effect: str, taken: bool) -> None:
    assert taken is is_lawful(group("ABC", "B", effect))


@pytest.mark.parametrize(("type_", "taken"), [(OpType.INFO, True), (OpType.FAIL, False)])
def test_fault_whose_end_is_not_known_may_have_taken_it(type_: OpType, taken: bool) -> None:
    assert taken is is_lawful(group("ABC", "B", type_=type_))


def test_fault_that_never_ended_may_have_taken_it() -> None:
    assert is_lawful(group("ABC", "B")[:-1])


def test_fault_that_ended_before_the_request_took_nothing() -> None:
    story = Group("ABC").leads("A", 1, ms=10)
    fault(story, "B", "power-lost")
    asked = len(story.ops)
    ops = story.acked("m1", "m1.0", 1, ms=3_000).ops
    assert not standing_of(ops, Promised(offset=1, asked=asked, told=asked + 1)).lawful


def test_loss_names_the_group_what_befell_each_member_and_who_holds_it() -> None:
    (found,) = [each for each in lost(PLANTS["gap-of-the-leader"].ops) if each.kind is Kind.LOST]
    assert "a majority of A, B and C had it, and no fault took it from any" in found.sentence
    assert "A and C hold it at the end, B does not" in found.sentence


def test_permitted_loss_names_who_lost_it_how_and_when() -> None:
    (found,) = lost(PLANTS["quorum-gone-by-no-fault-lawful"].ops)
    assert "permitted, as C lost its unflushed bytes with its power at 5.005 s" in found.sentence


def test_loss_that_only_a_read_shows_is_judged_by_the_group_too() -> None:
    (found,) = lost(PLANTS["first-record-that-a-read-skips"].ops)
    assert Kind.LOST is found.kind
    assert "A, B and C hold it at the end" in found.sentence


def test_no_rule_of_the_isr_judges_the_members_of_a_group() -> None:
    ops = Group("ABC").leads("A", 1, ms=10, members="AAX").ops
    assert [] == isr(ops)


def test_stuck_replica_of_a_group_is_not_said_to_be_outside_an_isr() -> None:
    story = Group("ABC").leads("A", 1, ms=10)
    lack = {"missing": "C is away", "outside": ["t-0 C"]}
    story._add(20, Source.RUNNER, "healed", OpType.FAIL, "runner", **lack)
    (found,) = caught_up(story.ops)
    assert "C is not in the group after healing: C is away." == found.sentence


def test_final_logs_are_those_that_are_served() -> None:
    ops = PLANTS["stores-of-one-replica-differ"].ops
    assert {5} == {len(log.batches) for log in final_logs(ops).values()}
    assert {("raft", 5)} == {
        (store, len(batches)) for theirs in other_stores(ops).values() for store, batches in theirs.items()
    }


@pytest.mark.parametrize("run", MADE)
def test_run_of_a_group_is_as_it_is_made(run: str) -> None:
    assert text_of(run) == (RUNS / f"{run}.jsonl").read_text(encoding="utf-8")


def test_group_of_a_dense_log_that_is_watched_is_judged_by_its_majority_too() -> None:
    story = Group("ABC", replace(TRAITS, dense=True, first_offset=0)).leads("A", 1, ms=10)
    story.acked("m1", "m1.0", 0, ms=1_000).healed(ms=2_000)
    for node in "ABC":
        story.log(node, [], ms=3_000, start=0)
    assert [Kind.LOST] == [each.kind for each in lost(story.ops)]


def test_divergence_of_a_group_says_what_happened_to_who_has_another_record() -> None:
    story = Group("ABC").leads("A", 1, ms=10).acked("m1", "m1.0", 1, ms=1_000)
    fault(story, "B", "power-lost")
    story.leads("B", 3, ms=3_000).acked("m2", "m2.0", 1, ms=4_000)
    for node, value in zip("ABC", ("m1.0", "m2.0", "m2.0"), strict=True):
        story.log(node, [(1, value)], ms=5_000)
    with_b, with_c = diverged(story.ops)
    assert with_b.sentence.endswith(
        "; 'm1.0' was acknowledged at 1.005 s, and B lost its unflushed bytes with its power at 2.001 s"
        "; 'm2.0' was acknowledged at 4.005 s, and A lost nothing."
    )
    assert "and C lost nothing; 'm2.0' was acknowledged at 4.005 s, and A lost nothing." in with_c.sentence


def test_divergence_in_what_nobody_acknowledged_says_only_who_holds_what() -> None:
    story = Group("ABC").leads("A", 1, ms=10)
    for node, value in zip("ABC", ("m1.0", "m2.0", "m2.0"), strict=True):
        story.log(node, [(1, value)], ms=5_000)
    assert all("acknowledged" not in each.sentence for each in diverged(story.ops))
