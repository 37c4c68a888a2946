"""Virtual time advances from event to event, in one order."""

from __future__ import annotations

import pytest

from targets.simulator.engine.clock import Clock


def test_events_come_in_the_order_of_their_times_and_then_of_their_planning() -> None:
    clock = Clock(seed=1)
    clock.at(30, ("late",))
    clock.at(10, ("a", 1))
    clock.at(10, ("a", 0))
    clock.after(20, ("b",))
    assert [("a", 1), ("a", 0), ("b",), ("late",), None] == [clock.pop() for _ in range(5)]
    assert 30 == clock.now_ns


def test_event_that_is_planned_for_the_past_happens_now() -> None:
    clock = Clock(seed=1)
    clock.advance(50)
    clock.at(10, ("late",))
    assert (50, 1) == (clock.next_ns, len(clock))
    assert ("late",) == clock.pop()
    assert (50, None) == (clock.now_ns, clock.next_ns)


def test_time_never_passes_an_event() -> None:
    clock = Clock(seed=1)
    clock.at(10, ("a",))
    with pytest.raises(AssertionError, match="has not happened"):
        clock.advance(11)


def test_chance_is_the_seeds() -> None:
    draws = [[Clock(seed=seed).random.random() for _ in range(2)] for seed in (1, 2)]
    assert draws[0][0] == draws[0][1]
    assert draws[0] != draws[1]
