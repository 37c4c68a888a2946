"""checkers/facts/keepers.py: who must still have a record, and which doubts excuse a replica."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.facts.keepers import Keepers, keepers_of
from checkers.facts.keeping import Standing, Why
from checkers.facts.sightings import Sighting, sightings
from tests.checkers.seen import Seen


def promised() -> Seen:
    """Return a history in which m1 is acknowledged at offset 0 after 12 ms, and all have it."""
    return Seen().acked("m1", 0, ms=11)


def restarted(node: str) -> Seen:
    """Return a history in which that node lost its power after the promise, and is back after 40 ms."""
    return promised().fault("power-loss", node, ms=30).fault("restart", node, ms=40)


def standing(story: Seen, node: str) -> tuple[Standing, Why | None]:
    """Return the node's last standing about m1."""
    known = keepers_of(story.ops, 0, "m1")
    assert known is not None
    last = known.at_end(node)
    assert last is not None
    return last.standing, last.why


def test_every_member_of_the_isr_must_have_what_is_promised() -> None:
    assert [(Standing.DUE, None)] * 3 == [standing(promised(), node) for node in "ABC"]


def test_a_replica_outside_the_isr_need_not_have_it() -> None:
    story = Seen().leads("A", 0, ms=5, isr="AB").acked("m1", 0, ms=11)
    assert (Standing.EXCUSED, Why.OUTSIDE) == standing(story, "C")


def test_a_member_that_fetches_from_below_it_lost_it_by_no_fault() -> None:
    assert (Standing.GONE, None) == standing(promised().fetches("BA", 1, ms=20).fetches("BA", 0, ms=30), "B")


def test_a_power_loss_excuses_a_member_until_it_has_copied_the_record_again() -> None:
    lost = restarted("B").fetches("BA", 0, ms=200)
    assert (Standing.EXCUSED, Why.POWER) == standing(lost, "B")
    assert (Standing.DUE, None) == standing(lost.fetches("BA", 1, ms=201), "B")


def test_a_power_loss_that_spared_the_record_excuses_nobody() -> None:
    assert (Standing.DUE, None) == standing(restarted("B").fetches("BA", 1, ms=200), "B")


def test_a_kill_excuses_nobody() -> None:
    story = promised().fault("kill", "B", ms=30).fault("restart", "B", ms=40)
    assert (Standing.GONE, None) == standing(story.fetches("BA", 0, ms=200), "B")


def test_a_leader_that_need_not_have_it_excuses_those_that_may_follow_it() -> None:
    story = restarted("B").leads("B", 1, ms=100)
    assert [Why.FOLLOWED, Why.POWER, Why.FOLLOWED] == [standing(story, node)[1] for node in "ABC"]
    down = promised().fault("kill", "C", ms=20).fault("power-loss", "B", ms=30).fault("restart", "B", ms=40)
    assert (Standing.DUE, None) == standing(down.leads("B", 1, ms=100), "C")


def test_a_node_that_answers_a_command_may_follow_that_leader_whatever_zookeeper_has() -> None:
    story = restarted("B").commanded("C", "B", ms=100)
    assert (Standing.EXCUSED, Why.FOLLOWED) == standing(story, "C")
    assert (Standing.DUE, None) == standing(promised().commanded("C", "B", ms=100), "C")


def test_a_follower_that_copied_it_had_it_though_the_watch_may_be_late() -> None:
    """C leaves the ISR within half a second; it counts only if it was seen to copy the record."""
    for offset, right in ((1, Standing.DUE), (0, Standing.EXCUSED)):
        story = Seen("local").fetches("CA", 0, ms=600).acked("m1", 0, ms=700)
        answer = story.ops.pop()
        story.fetches("CA", offset, ms=701)
        story.ops.append(replace(answer, index=len(story.ops), time_ns=702_000_000))
        story.leads("A", 0, ms=900, isr="AB")
        assert right is standing(story, "C")[0]


def test_a_leader_in_a_state_that_the_watch_missed_is_a_doubt() -> None:
    story = restarted("B")
    story._version += 2
    assert (Standing.EXCUSED, Why.FOLLOWED) == standing(story.leads("A", 3, ms=100), "C")


def test_another_record_at_its_offset_shows_that_it_is_gone() -> None:
    story = promised().leads("B", 1, ms=50).acked("m2", 0, ms=60)
    assert [(Standing.GONE, None)] * 3 == [standing(story, node) for node in "ABC"]


def test_a_final_log_shows_what_no_fault_can_have_taken() -> None:
    story = restarted("B").log("A", "m1").log("B").log("C")
    assert [Standing.DUE, Standing.EXCUSED, Standing.GONE] == [standing(story, node)[0] for node in "ABC"]


def _held() -> Seen:
    """B's fetch from offset 1 waits while B loses its power, and passes after B's next one, from offset 0."""
    story = promised().frame("hold", "BA", ms=20).frame("held", "BA", ms=21)
    story.fault("power-loss", "B", ms=30).fault("restart", "B", ms=40).frame("release", "BA", ms=300)
    return story.fetches("BA", 1, ms=301)


@pytest.mark.parametrize(
    ("condition", "story", "right"),
    [
        # A process that has ended sent it.
        ((Keepers, "_was_back", lambda *_: False), restarted("B").fetches("BA", 1, ms=45), Standing.EXCUSED),
        # C does not lead: the fetch may have waited for C since B followed it.
        ((Keepers, "_led_at", lambda *_: True), promised().fetches("BC", 0, ms=50), Standing.DUE),
        ((Sighting, "fresh", True), _held(), Standing.EXCUSED),
    ],
)
def test_an_old_fetch_shows_nothing(
    condition: tuple[Any, str, Any], story: Seen, right: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert right is standing(story, "B")[0]
    monkeypatch.setattr(*condition)
    assert right is not standing(story, "B")[0]


def test_a_fetch_is_as_old_as_the_first_hold_that_stopped_it() -> None:
    """One of two holds is released: the frame goes on waiting, and is recorded when the other is released."""
    story = Seen().frame("hold", "BA", ms=10).frame("held", "BA", ms=11).frame("hold", "B*", ms=12)
    story.frame("release", "BA", ms=20).frame("release", "B*", ms=900).fetches("BA", 0, ms=901)
    story.fetches("BA", 1, ms=2_000)
    assert [11_000_000, 2_000_000_000] == [each.sent_ns for each in sightings(story.ops)]
