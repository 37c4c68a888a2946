"""Rules choose frames by link, api, direction and fetch offset; a hold says what it saw."""

from __future__ import annotations

import dataclasses

import pytest

from harness.fabric.limits import PASSED_KINDS_MAX
from harness.fabric.rules import Cut, Delay, Direction, Hold, Pattern, Rules, Seen, link_matches
from harness.model import PreconditionError

FETCH_5 = Seen(link=("A", "B"), api="Fetch", direction=Direction.REQUEST, version=5, offsets=(("t", 5), ("u", 90)))
EXACT = Pattern(api="Fetch", src="A", dst="B", direction=Direction.REQUEST)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"api": "*"},
        {"src": "*"},
        {"dst": "*"},
        {"from_offset": 5},
        {"from_offset": 90},
        {"from_offset": 5, "topic": "t"},
        {"topic": "u"},
    ],
)
def test_pattern_matches_when_every_part_does(changed: dict[str, object]) -> None:
    assert dataclasses.replace(EXACT, **changed).matches(FETCH_5)


@pytest.mark.parametrize(
    "changed",
    [
        {"api": "Produce"},
        {"src": "B"},
        {"dst": "A"},
        {"src": "B", "dst": "A"},
        {"direction": Direction.ANSWER},
        {"from_offset": 91},
        {"from_offset": 6, "topic": "t"},
        {"topic": "v"},
    ],
)
def test_pattern_does_not_match_when_one_part_differs(changed: dict[str, object]) -> None:
    assert not dataclasses.replace(EXACT, **changed).matches(FETCH_5)


def test_pattern_with_an_offset_does_not_match_a_frame_without_offsets() -> None:
    other = Seen(link=("A", "B"), api="LeaderAndIsr", direction=Direction.REQUEST)
    anything = Pattern(api="*", src="*", dst="*", direction=Direction.REQUEST)
    assert anything.matches(other)
    assert not dataclasses.replace(anything, from_offset=0).matches(other)


def test_link_matches_takes_an_unknown_source_only_for_any() -> None:
    assert link_matches(("*", "B"), ("?", "B"))
    assert link_matches(("?", "B"), ("?", "B"))
    assert not link_matches(("A", "B"), ("?", "B"))


def test_hold_gives_the_frame_that_it_stopped() -> None:
    hold = Hold(dataclasses.replace(EXACT, from_offset=3, topic="t"))
    hold.note_held(FETCH_5)
    frame = hold.wait(0.0)
    assert (("A", "B"), "Fetch", Direction.REQUEST, 5, 5) == (
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
        "hold of Fetch request on A->B from offset 91: 0 frames were held when 0.0 s have passed; expected 1. "
        "Passed by instead: 2 x Fetch request on A->B (last at offset 90)"
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


def test_rules_give_the_oldest_rule_that_matches() -> None:
    first, second = Hold(EXACT), Hold(EXACT)
    rules = Rules(holds=[first, second])
    assert first is rules.hold_of(FETCH_5)
    rules.holds.remove(first)
    assert second is rules.hold_of(FETCH_5)
    assert rules.hold_of(dataclasses.replace(FETCH_5, link=("B", "A"))) is None


def test_rules_give_cuts_and_delays_only_for_their_links() -> None:
    cut = Cut(links=(("A", "B"), ("*", "C")), close=False)
    delay = Delay(pattern=EXACT, seconds=2.0)
    rules = Rules(cuts=[cut], delays=[delay])
    assert [cut, cut, None] == [rules.cut_of(link) for link in (("A", "B"), ("?", "C"), ("B", "A"))]
    others = dataclasses.replace(FETCH_5, link=("B", "A"))
    assert [delay, None] == [rules.delay_of(seen) for seen in (FETCH_5, others)]
    assert not rules.idle
    assert Rules().idle
