"""checkers/rules/committed.py: members of the ISR that lack what was committed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.rules.committed import committed
from harness.model import Kind, OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import TOPIC, Story


@pytest.mark.parametrize(("fetched", "found"), [(False, []), (True, [Kind.NOT_REPLICATED])])
def test_member_joined_by_a_write_that_was_under_way_until_it_has_fetched_in_its_new_life(
    fetched: bool, found: list[Kind]
) -> None:
    """
    B's write that lets A in is late: A has lost m2 with its power since, and been told to follow B again.

    Source: KIP-903, "stale ISR expansion".
    """
    story = Story(RECORDS, "kip380").started("A", "B").elected("B", 0, isr="B").leads("B", 0, 0, isr="B")
    story.follows("A", "B", 0, 0).append("B", 0, 5, 0, "leader").append("A", 0, 5, 0, "follower").passes("B", 5)
    story.fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", 3).follows("A", "B", 0, 3)
    if fetched:
        story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **TOPIC, link=["A", "B"], offset=3)
    setup, *ops = story.elected("B", 0, isr="AB").ops
    simulated = replace(setup, value={**setup.value, "host": "sim"})
    assert found == [anomaly.kind for anomaly in committed([simulated, *ops])]
