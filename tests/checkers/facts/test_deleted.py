"""What was deleted on purpose, and whether a log has ended below an offset since."""

from __future__ import annotations

import pytest

from checkers.facts.deleted import ALL_COMMITTED, ended_since
from checkers.rules.deleted import deleted
from harness.model import OpType, PartOps, Source
from tests.checkers.story import TOPIC, Story


@pytest.mark.parametrize(("end", "ended"), [(2, True), (3, False)])
def test_log_that_is_recovered_with_a_lower_end_has_ended_below_it(end: int, ended: bool) -> None:
    """Its unflushed end is gone with the power, and others come in its place; seed 203438 of the simulator."""
    story = Story({"x": ["x-0"]}).started("A", "B").elected("A", 0).leads("A", 0, 0).append("A", 0, 4, 0, "leader")
    story.broker("A", "cleaned", **TOPIC, upto=3, size=0)
    index = story.ops[-1].index
    story.started("B").recovered("B", 0).started("A").recovered("A", end)
    assert ended == ended_since(PartOps(story.ops), "A", index, 3)
    assert not ended_since(PartOps(story.ops), "A", story.ops[-1].index, 3)


def asks(story: Story, client: str, type_: OpType, **answer: int) -> Story:
    return story.add(Source.CLIENT, client, type_, "delete-records", **TOPIC, before=ALL_COMMITTED, **answer)


def moved(story: Story, node: str, start: int, to: int, reason: str) -> Story:
    return story.broker(node, "log-start", **TOPIC, **{"from": start}, to=to, reason=reason)


@pytest.mark.parametrize(("ends", "answer", "early"), [
    ("meanwhile", OpType.INFO, False), ("meanwhile", None, False), ("after", OpType.INFO, False),
    ("meanwhile", OpType.FAIL, True), ("meanwhile", OpType.OK, True), ("before", OpType.INFO, True),
    ("", None, True),
])  # fmt: skip
def test_deletion_of_all_that_is_committed_is_not_reported_where_a_disk_error_ended_the_leader_in_it(
    ends: str, answer: OpType | None, early: bool
) -> None:
    """One deletion before it was reported, so that this one is not all that is known of deletions."""
    story = Story({"x": ["x-0"]}).started("A", "B").elected("A", 0).leads("A", 0, 0).follows("B", "A", 0, 0)
    story.append("A", 0, 4, 0, "leader").append("B", 0, 4, 0, "follower").passes("A", 1).passes("B", 1)
    asks(story, "client-7", OpType.INVOKE)
    moved(moved(story, "A", 0, 1, "delete-records"), "B", 0, 1, "leader").passes("A", 4)
    asks(story, "client-7", OpType.OK, low_watermark=1)
    for when in ("before", "meanwhile", "after"):
        if when == "meanwhile":
            asks(story, "client-8", OpType.INVOKE)
        if when == "after" and answer is not None:
            asks(story, "client-8", answer, **({"low_watermark": 1} if answer is OpType.OK else {}))
        if when == ends:
            story.broker("A", "ended", reason="OSError(5, 'Input/output error')")
    story.started("A").recovered("A", 4).elected("A", 1).leads("A", 1, 4).passes("B", 4)
    moved(story, "B", 1, 3, "leader").log("A", [], start=3).log("B", [], start=3)
    said = [found.sentence for found in deleted(PartOps(story.ops))]
    assert early is any("and what was to be deleted ends at 1" in sentence for sentence in said), said


@pytest.mark.parametrize(("retains", "altered", "ends", "early"), [
    (None, "", True, True), (True, "", True, False), (None, "retention.ms", True, False),
    (None, "segment.bytes", True, True), (True, "", False, True),
])  # fmt: skip
def test_only_deletion_by_retention_of_a_run_may_be_in_the_step_in_which_a_disk_error_ended_the_broker(
    retains: bool | None, altered: str, ends: bool, early: bool
) -> None:
    """Nobody reports it then; that brokers delete by retention is known of the set-up, or of the topic."""
    story = Story({"x": ["x-0"]}, retains=retains).started("A").elected("A", 0).leads("A", 0, 0)
    if altered:
        story.add(Source.CLIENT, "client-7", OpType.INVOKE, "alter-topic", topic="t", setting=altered, to="100")
    story.append("A", 0, 4, 0, "leader").passes("A", 4)
    if ends:
        story.broker("A", "ended", reason="OSError(5, 'Input/output error')")
    story.started("A").recovered("A", 4).elected("A", 1).leads("A", 1, 4).log("A", [], start=3)
    assert early is bool(deleted(PartOps(story.ops)))
