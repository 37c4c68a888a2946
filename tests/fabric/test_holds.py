"""A hold returns the frames that it stopped to any thread, and otherwise reports the frames that passed."""

from __future__ import annotations

import dataclasses

import pytest

from harness.fabric.core.rules import Direction, Pattern, Seen
from harness.fabric.holds import Hold
from harness.fabric.limits import PASSED_KINDS_MAX
from harness.model import PreconditionError

FETCH_5 = Seen(link=("A", "B"), api="fetch", direction=Direction.REQUEST, version=5, offsets=(("t", 5), ("u", 90)))
EXACT = Pattern(api="fetch", src="A", dst="B", direction=Direction.REQUEST)


def test_hold_gives_the_frame_that_it_stopped() -> None:
    hold = Hold(dataclasses.replace(EXACT, from_offset=3, topic="t"))
    hold.note_held(FETCH_5)
    frame = hold.wait(0.0)
    assert (("A", "B"), "fetch", Direction.REQUEST, 5, 5) == (
        frame.link,
        frame.api,
        frame.direction,
        frame.version,
        frame.offset,
    )
    assert (frame,) == hold.held


def test_hold_says_what_passed_when_nothing_was_held_in_time() -> None:
    hold = Hold(dataclasses.replace(EXACT, from_offset=91))
    hold.note_passed(FETCH_5)
    hold.note_passed(FETCH_5)
    with pytest.raises(PreconditionError) as caught:
        hold.wait(0.0)
    assert (
        "hold of fetch request on A->B from offset 91: 0 frames were held when 0.0 s have passed; expected 1. "
        "Passed by instead: 2 x fetch request on A->B (last at offset 90)"
    ) == str(caught.value)


def test_hold_stops_waiting_when_it_is_over() -> None:
    hold = Hold(EXACT)
    hold.note_over()
    with pytest.raises(PreconditionError, match=r"was released or dropped.*Passed by instead: nothing"):
        hold.wait(60.0)


def test_hold_waits_for_as_many_frames_as_asked() -> None:
    hold = Hold(EXACT)
    hold.note_held(FETCH_5)
    with pytest.raises(PreconditionError, match="1 frames were held"):
        hold.wait(0.0, count=2)
    second = hold.note_held(dataclasses.replace(FETCH_5, offsets=(("t", 6),)))
    assert second == hold.wait(0.0, count=2)


def test_hold_keeps_a_bounded_number_of_kinds_that_passed() -> None:
    hold = Hold(EXACT)
    for number in range(PASSED_KINDS_MAX + 5):
        hold.note_passed(dataclasses.replace(FETCH_5, api=f"api-{number}"))
    with pytest.raises(PreconditionError) as caught:
        hold.wait(0.0)
    assert PASSED_KINDS_MAX == str(caught.value).count(" x ")
