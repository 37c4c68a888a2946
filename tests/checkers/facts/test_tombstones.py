"""From when on a tombstone may be gone, where a node was installed another protocol meanwhile."""

from __future__ import annotations

import pytest

from checkers.facts.tombstones import gone_from_ns
from harness.model import OpType, PartOps, Source
from tests.checkers.story import TOPIC, Story

DELAY_MS = 10_000
NS_PER_MS = 1_000_000


@pytest.mark.parametrize(("installed", "at_once"), [("", False), ("yes", False), ("no", True)])
def test_delay_holds_if_all_that_was_installed_writes_horizons(installed: str, at_once: bool) -> None:
    rules = {"epochs": "yes", "tombstone_horizon": "yes"}
    story = Story({"m1": ["k0/m1.0"]}, "kip380", rules=rules, delete_retention_ms=DELAY_MS).started("A", "B")
    story.elected("A", 0).leads("A", 0, 0).append("A", 0, 4, 0, "leader").passes("A", 4)
    if installed:
        other = {"protocol": "@kip320", "rules": {**rules, "tombstone_horizon": installed}}
        story.add(Source.RUNNER, "runner", OpType.INFO, "installed", node="B", **other)
    story.broker("A", "cleaned", **TOPIC, upto=4, size=100)
    cleaned_ns = story.ops[-1].time_ns
    found = gone_from_ns(PartOps(story.ops), 2)
    assert found is not None
    assert found == 0 if at_once else 0 < found - cleaned_ns <= DELAY_MS * NS_PER_MS
