"""checkers/facts/fates.py: which ends of a copy a failed write, a failed flush or a lost disk explains."""

from __future__ import annotations

import pytest

from checkers.facts.copies import copies_of
from checkers.facts.fates import Cause, End, fates_of
from harness.model import OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import TOPIC, Story


def end_of(story: Story, node: str) -> End | None:
    """Return how the node's copy of the record at offset 1 ended."""
    origin = next(op.index for op in story.ops if op.f == "append" and op.process == "A")
    return fates_of(story.ops, 1, origin)[node][0].end


def copied() -> Story:
    """Return a story in which A leads with two records, and B has copied both."""
    story = Story(RECORDS, "kip101").started("A", "B").elected("A", 0).leads("A", 0, 0).follows("B", "A", 0, 0)
    return story.append("A", 0, 2, 0, "leader").append("B", 0, 2, 0, "follower")


def fault(story: Story, name: str, effect: str, node: str) -> Story:
    for type_ in (OpType.INVOKE, OpType.OK):
        story.add(Source.NEMESIS, "nemesis", type_, name, nodes=[node], effect=effect, band="down")
    return story


def test_follower_whose_write_failed_may_have_cut_its_log_before_without_a_report() -> None:
    story = copied().broker("B", "ended", reason="OSError(28, 'No space left on device')")
    end = end_of(fault(story, "disk-full", "down", "B").started("B").recovered("B", 0), "B")
    assert end is not None
    assert (Cause.HARNESS, "ended") == (end.cause, end.proof.f if end.proof else "")
    assert copies_of(story.ops).reported


def test_leader_cuts_nothing_and_may_not_come_back_without_it_after_a_failed_write() -> None:
    story = copied().broker("A", "ended", reason="OSError(28, 'No space left on device')")
    end = end_of(fault(story, "disk-full", "down", "A").started("A").recovered("A", 0), "A")
    assert end is not None
    assert Cause.SHORT is end.cause


def test_kill_takes_nothing_from_a_follower() -> None:
    end = end_of(copied().fault("kill", "B").started("B").recovered("B", 0), "B")
    assert end is not None
    assert Cause.SHORT is end.cause


def test_failed_flush_and_lost_disk_take_what_they_say() -> None:
    flush = end_of(fault(copied(), "flush-error", "pages-lost", "A").started("A").recovered("A", 0), "A")
    disk = end_of(
        fault(fault(copied(), "kill", "down", "A"), "lose-disk", "disk-lost", "A").started("A").recovered("A", 0),
        "A",
    )
    assert flush is not None
    assert disk is not None
    assert ("as its flush failed" in flush.text, "with its disk" in disk.text) == (True, True)
    assert (Cause.POWER, Cause.POWER) == (flush.cause, disk.cause)


@pytest.mark.parametrize(("shown", "cause"), [
    ("before", Cause.MOVED),
    ("after", Cause.MOVED),
    ("never", Cause.VANISHED),
])  # fmt: skip
def test_replica_that_was_moved_away_is_deleted_whenever_the_watch_shows_the_move(
    shown: str, cause: Cause
) -> None:
    """A broker is told to delete it once ZooKeeper has the new replicas; the watch may read them later still."""
    story = copied()

    def moves() -> None:
        story.add(Source.METADATA, "metadata", OpType.INFO, "assigned", **TOPIC, replicas=["A"])

    if shown == "before":
        moves()
    story.broker("B", "stopped")
    if shown == "after":
        moves()
    end = end_of(story, "B")
    assert end is not None
    assert cause is end.cause


@pytest.mark.parametrize(("told", "cause"), [(False, Cause.MOVED), (True, Cause.VANISHED)])
def test_replica_that_is_wanted_again_is_deleted_by_a_late_command_until_it_was_told_anything_newer(
    told: bool, cause: Cause
) -> None:
    """A paused broker reads that it is no replica any more when it is one again (seed 31148)."""
    story = copied()
    for replicas in (["A"], ["A", "B"]):
        story.add(Source.METADATA, "metadata", OpType.INFO, "assigned", **TOPIC, replicas=replicas)
    if told:
        story.follows("B", "A", 1, 3)
    story.broker("B", "stopped")
    end = end_of(story, "B")
    assert end is not None
    assert cause is end.cause
