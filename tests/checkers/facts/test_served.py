"""Only a follower that received a record from a leader proves that the leader had it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from checkers.facts.served import has_served
from checkers.rules.lost import lost
from harness.model import Anomaly, Kind, OpType, Source
from tests.checkers.golden import M1, M2, RECORDS
from tests.checkers.story import TOPIC, Story

M2_AT_3 = (3, M2[0])


def fetches(story: Story, follower: str, leader: str, *offsets: int) -> Story:
    for offset in offsets:
        story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **TOPIC, link=[follower, leader], offset=offset)
    return story


def begun(records: Mapping[str, Sequence[str]], *, sends_once: bool | None = True) -> Story:
    story = Story(records, "kip380")
    told = {} if sends_once is None else {"sends_once": sends_once}
    story.ops[0] = replace(story.ops[0], value={**story.ops[0].value, **told})
    return story.elected("A", 0)


def silent(*, sends_once: bool | None = True) -> Story:
    """Return a history without broker events: A leads, m1 and m2 are acked at 0 to 4, then B leads in epoch 1."""
    story = begun(RECORDS, sends_once=sends_once).sends("m1").acked("m1", 0).sends("m2").acked("m2", 3)
    return story.elected("B", 1)


def led_with_m2(story: Story, since: int) -> bool:
    return has_served(story.ops, "B", M2_AT_3, since, len(story.ops))


def test_leader_that_gave_more_than_the_record_had_it() -> None:
    since = len(silent().ops) - 1
    assert led_with_m2(fetches(silent(), "A", "B", 3, 5), since)
    assert led_with_m2(fetches(silent().sends("m3").acked("m3", 5), "A", "B", 5, 6), since)


@pytest.mark.parametrize("sends_once", [False, None])
def test_nothing_is_proven_where_the_client_may_have_sent_a_record_twice(sends_once: bool | None) -> None:
    """The record at the offset may be another record's second copy, whose offset was not reported."""
    story = silent(sends_once=sends_once)
    assert not led_with_m2(fetches(story, "A", "B", 3, 5), len(silent().ops) - 1)


@pytest.mark.parametrize("fetched", [(), (5,), (5, 5), (1, 3), (5, 3)], ids=str)
def test_fetch_that_asks_for_no_more_than_the_last_one_shows_nothing(fetched: tuple[int, ...]) -> None:
    story = silent()
    assert not led_with_m2(fetches(story, "A", "B", *fetched), len(story.ops) - 1)


def test_what_came_from_another_leader_meanwhile_or_too_late_shows_nothing() -> None:
    story = silent()
    since = len(story.ops) - 1
    fetches(fetches(fetches(story, "A", "B", 3), "A", "C", 3), "A", "B", 5)
    assert not led_with_m2(story, since)
    story = fetches(silent(), "A", "B", 3, 5)
    assert not led_with_m2(story, len(story.ops))
    assert not has_served(story.ops, "B", M2_AT_3, since, len(story.ops) - 1)


def test_record_that_may_stand_in_its_place_takes_the_proof_away() -> None:
    """Another record may be at that offset if it was sent before and its offset is unknown, or is that one."""
    for other, proves in (("unknown", False), ("there", False), ("elsewhere", True), ("failed", True)):
        story = begun({**RECORDS, "x": ["x-0"]}).sends("x")
        if other == "failed":
            story.add(
                Source.CLIENT, "client-1", OpType.FAIL, "produce", **TOPIC, name="x", value="x-0", error="no"
            )
        elif other != "unknown":
            story.acked("x", 3 if other == "there" else 7, acks=1)
        story.sends("m1").acked("m1", 0).sends("m2").acked("m2", 3).elected("B", 1)
        since = len(story.ops) - 1
        assert proves is led_with_m2(fetches(story, "A", "B", 3, 5), since), other


def all_lose_power(story: Story, epoch: int = 2) -> list[Anomaly]:
    story.fault("power-loss", "A", "B").elected("A", epoch, isr="A").fault("restart", "A", "B")
    return lost(story.healed().log("A", [(0, M1)]).log("B", [(0, M1)]).read(*M1).done().ops)


def test_loss_is_not_blamed_on_a_leader_that_gave_the_record_on_before_its_power_went() -> None:
    """Its final log lacks the record, but does not show what it led with before the power loss."""
    (found,) = all_lose_power(fetches(silent(), "A", "B", 3, 5))
    assert (Kind.PERMITTED, ("A",), 2) == (found.kind, found.nodes, found.epoch)
    (doubtful,) = all_lose_power(silent())
    assert (Kind.UNCHECKED, ("B",), 1) == (doubtful.kind, doubtful.nodes, doubtful.epoch)


@pytest.mark.parametrize("between", ["", "kill"])
def test_leader_that_leads_on_in_a_new_epoch_has_what_it_gave_in_the_last_unless_it_was_down(between: str) -> None:
    """Apache Kafka moves leadership in two epochs; in the first, the old leader keeps leading."""
    story = fetches(silent(), "A", "B", 3, 5)
    if between:
        story.fault("kill", "B").fault("restart", "B")
    (found,) = all_lose_power(story.elected("B", 2), epoch=3)
    blamed = (Kind.UNCHECKED, ("B",), 2) if between else (Kind.PERMITTED, ("A",), 3)
    assert blamed == (found.kind, found.nodes, found.epoch)
