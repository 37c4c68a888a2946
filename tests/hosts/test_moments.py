"""A moment of this machine is told to another one by that one's clocks, never later than it was."""

from __future__ import annotations

import pytest

from harness.clocks import NS_PER_S, Moment, Reading
from harness.hosts import moments

# How far the other machine's clocks are ahead of this one's.
WALL_NS, MONOTONIC_NS = -3_000_000_000, 5 * 86_400 * NS_PER_S


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 100 ns pass from each look at this machine's clocks to the next."""
    times = iter(range(1_000_000_000, 2_000_000_000, 100))
    monkeypatch.setattr(moments, "now", lambda: Moment(wall_ns=(at := next(times)), monotonic_ns=at))


@pytest.fixture
def ahead(passing: None) -> moments.Ahead:
    """What is found of the other machine, which looks at its clocks 40 ns after this one asked."""
    ours = 1_000_000_040
    return moments.look(lambda: Moment(wall_ns=ours + WALL_NS, monotonic_ns=ours + MONOTONIC_NS))


def test_distance_of_two_machines_clocks_lies_between_its_bounds(ahead: moments.Ahead) -> None:
    assert (WALL_NS - 60, WALL_NS + 40) == (ahead.least.wall_ns, ahead.most.wall_ns)
    assert (MONOTONIC_NS - 60, MONOTONIC_NS + 40) == (ahead.least.monotonic_ns, ahead.most.monotonic_ns)


def test_reading_is_told_with_the_moments_of_the_machine_and_never_later(ahead: moments.Ahead) -> None:
    asked, answered = Moment(wall_ns=10, monotonic_ns=20), Moment(wall_ns=30, monotonic_ns=40)
    told = ahead.there(Reading(wall_ns=1, monotonic_ns=2, asked=asked, answered=answered))
    assert (1, 2) == (told.wall_ns, told.monotonic_ns)
    assert Moment(wall_ns=10 + WALL_NS - 60, monotonic_ns=20 + MONOTONIC_NS - 60) == told.asked
    assert Moment(wall_ns=30 + WALL_NS - 60, monotonic_ns=40 + MONOTONIC_NS - 60) == told.answered


@pytest.mark.parametrize(
    ("off_s", "why"),
    [
        (0.9, ""),
        (-0.9, ""),
        (90.0, "its wall clock is 90.0 s ahead of this machine's; expected at most 1 s"),
        (-90.0, "its wall clock is 90.0 s behind this machine's; expected at most 1 s"),
    ],
)
def test_wall_clock_that_surely_is_far_off_is_named(passing: None, off_s: float, why: str) -> None:
    there = 1_000_000_040 + round(off_s * NS_PER_S)
    found = moments.look(lambda: Moment(wall_ns=there, monotonic_ns=0)).why_wrong()
    assert why == found.partition(":")[0]
