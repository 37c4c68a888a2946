"""checkers/rules/read_lost.py: what a consumer was shown by a node whose loss of power undid a cut."""

from __future__ import annotations

import pytest

from checkers.rules.read_lost import read_lost
from checkers.rules.readers_differ import readers_differ
from harness.model import Kind, OpType, PartOps, Source
from tests.checkers.golden import M1, M2, M3, RECORDS
from tests.checkers.story import TOPIC, Story

# A recovery tells of epochs where the newest one counts.
RULES = {"epochs": "yes", "newest_epoch_wins": "yes"}


def shown(story: Story, node: str, *values: str) -> Story:
    """Let a consumer poll a node from offset 3 on."""
    asked = {**TOPIC, "node": node, "position": 3, "sought": True}
    story.add(Source.CLIENT, "client-9", OpType.INVOKE, "poll", **asked)
    records = [[3 + place, value] for place, value in enumerate(values)]
    answer = {"records": records, "high_watermark": 3 + len(values)}
    return story.add(Source.CLIENT, "client-9", OpType.OK, "poll", **asked, **answer)


def undone(*, unseen: bool, cut: bool = True) -> Story:
    """Let A cut m2, follow C to m3, get m2 back as it loses its power, and show it as the leader until C leads."""
    # A simulated history has no races: what the poll showed is what A had then.
    story = Story(RECORDS, "kip101", replicas="ABC", rules=RULES, host="sim").started("A", "B", "C")
    story.elected("A", 0, isr="ABC").leads("A", 0, 0, isr="ABC").follows("B", "A", 0, 0).follows("C", "A", 0, 0)
    story.sends("m1").append("A", 0, 3, 0, "leader").append("B", 0, 3, 0, "follower")
    story.append("C", 0, 3, 0, "follower").passes("A", 3).acked("m1", 0)
    story.sends("m2", 1)
    if cut:
        story.append("A", 3, 5, 0, "leader").acked("m2", 3, 1)
    story.elected("C", 1, isr="ABC").leads("C", 1, 3, isr="ABC").follows("B", "C", 1, 3)
    story.follows("A", "C", 1, 5 if cut else 3)
    story.cut("A", 5 if cut else 3, 3, "epoch-answer", 1)
    story.sends("m3").append("C", 3, 6, 1, "leader").append("A", 3, 6, 1, "follower")
    story.append("B", 3, 6, 1, "follower").passes("C", 6).acked("m3", 3)
    shown(story, "C", *M3).fault("power-loss", "A").fault("restart", "A")
    story.started("A").recovered("A", 5, [(0, 0)])
    if unseen:
        story.broker("B", "controller", epoch=2, active=True)
    story.elected("A", 2, isr="ABC").leads("A", 2, 5, isr="ABC", high_watermark=5)
    shown(story, "A", *M2)
    story.elected("C", 3, isr="ABC").leads("C", 3, 6, isr="ABC").follows("A", "C", 3, 5)
    story.cut("A", 5, 3, "epoch-answer", 3).append("A", 3, 6, 1, "follower")
    return story.healed().log("C", [(0, M1), (1, M3)]).read(*M1, *M3).done()


@pytest.mark.parametrize("unseen", [True, False])
def test_record_that_came_back_with_a_lost_cut_is_a_known_gap_if_no_controller_saw_the_node_go(
    *, unseen: bool
) -> None:
    story = undone(unseen=unseen)
    (found,) = read_lost(story.ops)
    assert (Kind.RETURNED if unseen else Kind.READ_LOST, ((3, 5),)) == (found.kind, found.ranges)
    assert unseen == ("a known gap: A had cut it, and its loss of power at 0." in found.sentence)
    assert unseen == (not readers_differ(story.ops))


@pytest.mark.parametrize(("before", "differs"), [(3, [(3, 5)]), (4, [(4, 5)]), (5, [])])
def test_readers_are_shown_other_records_where_the_first_ones_were_deleted(
    before: int, differs: list[tuple[int, int]]
) -> None:
    """A log that is lost with its disk begins again at 0: nobody says whether what was there before is lost."""
    story = undone(unseen=False)
    story.add(Source.CLIENT, "client-8", OpType.OK, "delete-records", **TOPIC, before=before, low_watermark=before)
    assert differs == [ranges for found in readers_differ(PartOps(story.ops)) for ranges in found.ranges]


def test_record_that_nobody_reported_is_no_known_gap_though_it_came_with_a_loss_of_power() -> None:
    (found,) = read_lost(undone(unseen=True, cut=False).ops)
    assert Kind.UNCHECKED is found.kind
