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
