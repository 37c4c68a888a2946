"""Rules select frames by link, API, direction and fetch offset."""

from __future__ import annotations

import dataclasses

import pytest

from harness.fabric.core.rules import Cut, Delay, Direction, Hold, Pattern, Rules, Seen, link_matches

FETCH_5 = Seen(link=("A", "B"), api="fetch", direction=Direction.REQUEST, version=5, offsets=(("t", 5), ("u", 90)))
EXACT = Pattern(api="fetch", src="A", dst="B", direction=Direction.REQUEST)


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
    other = Seen(link=("A", "B"), api="command", direction=Direction.REQUEST)
    anything = Pattern(api="*", src="*", dst="*", direction=Direction.REQUEST)
    assert anything.matches(other)
    assert not dataclasses.replace(anything, from_offset=0).matches(other)


def test_link_matches_takes_an_unknown_source_only_for_any() -> None:
    assert link_matches(("*", "B"), ("?", "B"))
    assert link_matches(("?", "B"), ("?", "B"))
    assert not link_matches(("A", "B"), ("?", "B"))


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
