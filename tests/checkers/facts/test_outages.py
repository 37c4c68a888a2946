"""checkers/facts/outages.py: a node is down from the fault's invoke to the first sign of its new process."""

from __future__ import annotations

from checkers.facts.fates import Cause, fates_of
from checkers.facts.outages import outages
from checkers.facts.view import at
from harness.model import OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import Story


def test_outage_lasts_from_invoke_until_the_process_started() -> None:
    story = Story(RECORDS).fault("kill", "A").started("B").started("A").fault("restart", "A")
    (outage,) = outages(story.ops)
    assert [False, False, True, True, False] == [outage.lasts_at(index) for index in range(5)]
    assert not outage.power_lost


def test_outage_ends_with_the_restart_when_brokers_tell_nothing() -> None:
    (outage,) = outages(Story(RECORDS).fault("power-loss", "A").fault("restart", "A").ops)
    assert 4 == outage.back
    assert outage.power_lost


def test_outage_lasts_when_the_node_never_came_back() -> None:
    first, second = outages(Story(RECORDS).fault("stop", "A", "B").fault("restart", "B").ops)
    assert (None, 4) == (first.back, second.back)


def test_outage_is_none_when_the_fault_did_not_bite() -> None:
    story = Story(RECORDS).fault("pause", "A")
    story.add(Source.NEMESIS, "nemesis", OpType.INVOKE, "kill", nodes=["A"])
    story.add(Source.NEMESIS, "nemesis", OpType.FAIL, "kill", nodes=["A"], error="alive")
    assert [] == outages(story.ops)


def lost_disk(story: Story, node: str) -> Story:
    about = {"nodes": [node], "effect": "disk-lost", "band": "mark"}
    story.add(Source.NEMESIS, "nemesis", OpType.INVOKE, "lose-disk", **about)
    return story.add(Source.NEMESIS, "nemesis", OpType.OK, "lose-disk", **about, probe="1 logs lost")


def test_outage_in_which_the_disk_was_lost_has_lost_bytes_whatever_took_the_node_down() -> None:
    story = lost_disk(Story(RECORDS).fault("kill", "A"), "A").fault("restart", "A").fault("kill", "A")
    first, second = outages(story.ops)
    assert first.emptied is story.ops[4]
    assert (True, None, False) == (first.power_lost, second.emptied, second.power_lost)
    assert None is outages(lost_disk(Story(RECORDS).fault("kill", "A", "B"), "B").ops)[0].emptied


def test_disk_that_was_lost_took_a_copy_though_the_power_was_lost_again_before_its_node_reported_anything() -> (
    None
):
    story = Story({"x": ["x-0"]}, "kip101").leads("A", 0, 0).sends("x").append("A", 0, 1, 0, "leader")
    story.follows("B", "A", 0, 0).append("B", 0, 1, 0, "follower").acked("x", 0)
    story = lost_disk(story.fault("kill", "B"), "B").started("B").fault("restart", "B")
    lost = next(op for op in story.ops if op.f == "lose-disk" and op.type is OpType.OK)
    story.fault("power-loss", "B").started("B").fault("restart", "B").follows("B", "A", 0, 0)
    (fate,) = fates_of(story.ops, 0, next(op.index for op in story.ops if op.f == "append"))["B"]
    assert fate.end is not None
    assert (Cause.POWER, f"lost it with its disk at {at(lost)}") == (fate.end.cause, fate.end.text)


def test_flush_that_failed_lost_bytes_and_shows_of_none_that_it_is_durable() -> None:
    story = Story(RECORDS)
    for type_ in (OpType.INVOKE, OpType.OK):
        story.add(Source.NEMESIS, "nemesis", type_, "flush-error", nodes=["A"], effect="pages-lost", band="down")
    (failed,) = outages(story.ops)
    (cut,) = outages(Story(RECORDS).fault("power-loss", "A").ops)
    assert (True, False) == (failed.power_lost, failed.settles)
    assert (True, True) == (cut.power_lost, cut.settles)
