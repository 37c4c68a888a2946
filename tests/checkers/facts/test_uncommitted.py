"""What polls showed above the high watermark of their own answer."""

from __future__ import annotations

import pytest

from checkers.facts.uncommitted import dirty_polls
from harness.model import OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import TOPIC, Story


def polled(story: Story, high_watermark: int, *records: tuple[int, str]) -> Story:
    asked = TOPIC | {"node": "A", "position": 0}
    story.add(Source.CLIENT, "client-5", OpType.INVOKE, "poll", **asked)
    answer = {"records": [list(record) for record in records], "high_watermark": high_watermark}
    return story.add(Source.CLIENT, "client-5", OpType.OK, "poll", **asked, **answer)


@pytest.mark.parametrize(("reports", "later", "dirty"), [
    (False, 1, False), (False, 0, True), (True, 1, True),
])  # fmt: skip
def test_record_above_the_high_watermark_of_its_answer_is_dirty_unless_a_silent_broker_passed_it_since(
    *, reports: bool, later: int, dirty: bool
) -> None:
    """Source: Apache Kafka's Partition.readRecords, which looks at its high watermark before it reads."""
    story = Story(RECORDS).started("A", "B").elected("A", 0)
    if reports:
        story.passes("A", 0)
    polled(polled(story, 0, (0, "m1-0")), later)
    assert [[(0, "m1-0")]] * dirty == [list(each.records) for each in dirty_polls(story.ops) if "own" in each.way]
