"""A reading of a node's clocks lies between two moments of the harness, and so do all figures made of it."""

from __future__ import annotations

from harness.clocks import Moment, Reading

S = 1_000_000_000


def reading(wall_s: int, asked_s: int, answered_s: int) -> Reading:
    asked, answered = (Moment(wall_ns=each * S, monotonic_ns=each * S) for each in (asked_s, answered_s))
    return Reading(wall_ns=wall_s * S, monotonic_ns=wall_s * S, asked=asked, answered=answered)


def test_wall_clock_is_ahead_by_no_less_and_no_more_than_the_moments_allow() -> None:
    assert (97.0, 98.0) == reading(110, asked_s=12, answered_s=13).ahead_s


def test_time_between_two_readings_is_bounded_by_their_nearest_and_furthest_moments() -> None:
    first, second = reading(0, asked_s=1, answered_s=2), reading(0, asked_s=5, answered_s=9)
    assert (3.0, 8.0) == second.passed_s(first)
