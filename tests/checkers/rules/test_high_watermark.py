"""A follower's high watermark above its leader's is wrong, but where its own log begins."""

from __future__ import annotations

import pytest

from checkers.rules.high_watermark import high_watermarks
from harness.model import PartOps
from tests.checkers.story import TOPIC, Story

RECORDS = {"x": [f"x-{number}" for number in range(6)]}


@pytest.mark.parametrize("start", [0, 3, 4])
def test_follower_that_deleted_more_than_its_leader_has_its_high_watermark_at_its_own_start(start: int) -> None:
    """Kafka, UnifiedLog: a high watermark is never below the log's start offset; seed 201110 of the simulator."""
    rules = {"epochs": "yes", "fence_fetch": "yes"}
    story = Story(RECORDS, "kip380", rules=rules).started("A", "B").elected("A", 0)
    story.leads("A", 0, 0).follows("B", "A", 0, 0)
    for base, end in ((0, 4), (4, 6)):
        story.append("A", base, end, 0, "leader").append("B", base, end, 0, "follower")
    story.passes("A", 4).elected("B", 1).leads("B", 1, 6, high_watermark=2).follows("A", "B", 1, 6)
    if start:
        story.broker("A", "log-start", **TOPIC, **{"from": 0, "to": start, "reason": "retention-size"})
    story.passes("A", 4)
    found = [each.sentence for each in high_watermarks(PartOps(story.ops)) if "its leader" in each.sentence]
    assert (start != 4) == bool(found)


@pytest.mark.parametrize("start", [0, 3, 4])
def test_high_watermark_may_be_where_a_deletion_has_moved_a_log_start_into_a_batch(start: int) -> None:
    """A deleted up to offset 3, in a batch; B's high watermark is older, and A leads after it (seed 2904)."""
    story = Story(RECORDS, "kip380").started("A", "B").elected("A", 0).leads("A", 0, 0).follows("B", "A", 0, 0)
    story.append("A", 0, 6, 0, "leader").append("B", 0, 6, 0, "follower").passes("A", 6)
    if start:
        story.broker("A", "log-start", **TOPIC, **{"from": 0, "to": start, "reason": "delete-records"})
    story.elected("B", 1).leads("B", 1, 6).follows("A", "B", 1, 6).passes("A", 3)
    story.elected("A", 2).leads("A", 2, 6).follows("B", "A", 2, 6).passes("B", 3)
    found = [each.sentence for each in high_watermarks(PartOps(story.ops)) if "no log ever" in each.sentence]
    assert (0 if start == 3 else 2) == len(found)
