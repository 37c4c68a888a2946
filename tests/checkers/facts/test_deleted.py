"""Whether a log has ended below an offset since: what was said of it up to there holds no longer."""

from __future__ import annotations

import pytest

from checkers.facts.deleted import ended_since
from harness.model import PartOps
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
