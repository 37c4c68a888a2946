"""A member's lag is judged by what its leader may know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.rules.lagging import lagging
from harness.model import Kind
from tests.checkers.golden import RECORDS
from tests.checkers.story import Story


@pytest.mark.parametrize(("follows", "found"), [(False, []), (True, [Kind.WRONG_ISR])])
def test_member_that_lost_what_it_had_copied_may_stay_until_it_follows_again(
    follows: bool, found: list[Kind]
) -> None:
    """
    A's last fetch, which tells B that it has all, arrives when A has lost it with its power.

    To a leader a member that had reached its end is in sync while nothing is appended (Kafka,
    Replica.isCaughtUp). Only the member's next fetch tells it otherwise.
    """
    story = Story(RECORDS, "kip380", replica_lag_ms=1).started("A", "B").elected("B", 0).leads("B", 0, 0)
    story.follows("A", "B", 0, 0).append("B", 0, 5, 0, "leader").append("A", 0, 5, 0, "follower")
    story.fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", 3)
    if follows:
        story.follows("A", "B", 0, 3)
    setup, *ops = story.passes("B", 5).ops
    later = [replace(op, time_ns=op.time_ns + 10_000_000_000) for op in story.passes("B", 5).ops[-1:]]
    assert found == [anomaly.kind for anomaly in lagging([setup, *ops, *later])]
