"""checkers/facts/known_gaps.py: what a controller could know of a replica that went and came back."""

from __future__ import annotations

import pytest

from checkers.facts.elections import takeovers
from checkers.facts.known_gaps import joined_before_return, last_standing, returned_unseen, returned_with_all
from checkers.facts.outages import outages
from harness.model import OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.seen import Seen
from tests.checkers.story import TOPIC, Story


def came_back(story: Story) -> Story:
    """Have B lose its power and register again."""
    story.fault("power-loss", "B").started("B").recovered("B", 0).fault("restart", "B")
    return story.broker("B", "member", taken_over=True, incarnation=9)


@pytest.mark.parametrize(("leader", "gap"), [(None, True), ("A", False)])
def test_members_that_return_at_once_stay_in_the_isr_only_if_nobody_could_lead(
    leader: str | None, gap: bool
) -> None:
    story = came_back(Story(RECORDS, "kip101").started("A", "B").elected("A", 0).leads("A", 0, 0))
    story.elected(leader, 1).elected("A", 2)
    assert gap is returned_with_all(story.ops, "B", outages(story.ops)[0])


def test_replica_that_left_the_isr_did_not_return_with_all() -> None:
    story = came_back(Story(RECORDS, "kip101").started("A", "B").elected("A", 0).leads("A", 0, 0))
    story.elected(None, 1, isr="A").elected("A", 2, isr="A")
    assert not returned_with_all(story.ops, "B", outages(story.ops)[0])


def decides(story: Story) -> Story:
    about = {"leader": 11, "epoch": 0, "isr": [11, 12], "unclean": False, "saw": [[11, 1], [12, 2]]}
    return story.broker("C", "elected", **TOPIC, **about)


@pytest.mark.parametrize(("before", "after", "unseen"), [
    (False, True, True), (True, True, False), (True, False, False), (False, False, False),
])  # fmt: skip
def test_new_controller_that_first_decides_later_may_still_have_read_who_is_there(
    before: bool, after: bool, unseen: bool
) -> None:
    story = Story(RECORDS, "kip101").started("A", "B").elected("A", 0).leads("A", 0, 0)
    story.broker("C", "controller", epoch=2, active=True)
    story = came_back(decides(story) if before else story)
    (decides(story) if after else story).elected("A", 1)
    assert unseen is returned_unseen(story.ops, "B", outages(story.ops)[0], len(story.ops))


@pytest.mark.parametrize(("paused", "resumed", "unseen"), [
    ("", False, False), ("A", False, False), ("C", False, True), ("C", True, False),
])  # fmt: skip
def test_controller_that_has_been_in_office_for_long_has_read_who_was_there_unless_it_was_paused(
    paused: str, resumed: bool, unseen: bool
) -> None:
    story = Story(RECORDS, "kip101").started("A", "B").broker("C", "controller", epoch=1, active=True)
    story.elected("A", 0).leads("A", 0, 0)
    if paused:
        story.fault("pause", paused)
    if resumed:
        story.fault("resume", paused)
    for _ in range(10):
        story.sends("m1")
    decides(came_back(story)).elected("A", 1)
    assert unseen is returned_unseen(story.ops, "B", outages(story.ops)[0], len(story.ops))


@pytest.mark.parametrize(("away", "read", "late", "unseen"), [
    (True, False, False, True), (False, False, False, False),
    (True, True, False, False), (True, False, True, False),
])  # fmt: skip
def test_replica_that_came_and_lost_its_power_at_once_was_not_read_in_between(
    away: bool, read: bool, late: bool, unseen: bool
) -> None:
    """The controller saw it away, and then its next registration alone (KIP-903)."""
    story = Story(RECORDS, "kip101").broker("C", "controller", epoch=1, active=True).started("A", "B")
    story.elected("A", 0).leads("A", 0, 0).broker("B", "member", taken_over=False, incarnation=3)
    for nodes in (["A"], ["A", "B"]) if away else (["A", "B"],):
        story.add(Source.METADATA, "metadata", OpType.INFO, "members", nodes=nodes)
    story.broker("B", "member", taken_over=False, incarnation=7)
    for _ in range(5 if late else 0):
        story.sends("m1")
    if read:
        about = {"leader": 11, "epoch": 1, "isr": [11, 12], "unclean": False, "saw": [[11, 1], [12, 7]]}
        story.broker("C", "elected", **TOPIC, **about)
    came_back(story).elected("A", 1)
    assert unseen is returned_unseen(story.ops, "B", outages(story.ops)[0], len(story.ops))


@pytest.mark.parametrize(("held", "fetched", "offset", "before"), [
    ("A", 3, 4, True), ("*", 3, 4, True), ("A", 5, 4, False), ("B", 3, 4, False), ("", 3, 4, False),
    ("A", 3, None, False),
])  # fmt: skip
def test_write_of_the_isr_was_under_way_if_zookeeper_is_late_and_no_fetch_since_reached_the_record(
    held: str, fetched: int, offset: int | None, before: bool
) -> None:
    """B had copied the record, lost it with its power, and fetches again while A's write is held."""
    story = Story(RECORDS, "kip101").started("A", "B").leads("A", 0, 0, isr="A").follows("B", "A", 0, 0)
    rule = {"link": [held, "metadata"], "api": "metadata-request", "direction": "request", "from_offset": None}
    if held:
        story.add(Source.FABRIC, "fabric", OpType.INFO, "hold", **rule)
    came_back(story).follows("B", "A", 0, 0)
    fetch = {**TOPIC, "link": ["B", "A"], "offset": fetched}
    story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **fetch)
    if held:
        story.add(Source.FABRIC, "fabric", OpType.INFO, "release", **rule)
    joined = story.elected("A", 0).ops[-1]
    assert before is joined_before_return(story.ops, "B", joined, offset)


@pytest.mark.parametrize(("registered", "gap"), [("AC", True), ("ABC", False)])
def test_last_standing_is_alone_if_the_other_member_joined_without_a_session(registered: str, gap: bool) -> None:
    """B's session ends before its leader's write lets it in; when A is back, no controller can elect B."""
    story = Seen().leads("A", 1, ms=5, isr="A").registered("AC", ms=10).leads("A", 1, ms=20, isr="AB")
    story.acked("m1", 0, ms=22).fault("power-loss", "A", ms=30).registered("C", ms=35)
    story.fault("restart", "A", ms=50).registered(registered, ms=60).leads("A", 2, ms=70, isr="A")
    losing, outage = takeovers(story.ops)[-1], outages(story.ops)[-1]
    assert gap is last_standing(story.ops, losing, outage, lambda _: False)


@pytest.mark.parametrize(
    ("shown", "told", "gap"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_decision_that_a_controller_wrote_and_could_not_report_takes_a_return_into_account(
    *, shown: bool, told: bool, gap: bool
) -> None:
    """It was deposed in between, and decided again in its next term (kip320, workload upgrade, seed 21)."""
    story = Story(RECORDS, "kip101").started("A", "B").elected("B", 0, isr="B").leads("B", 0, 0, isr="B")
    story.fault("power-loss", "B").elected(None, 1, isr="B").started("B").recovered("B", 0)
    if shown:
        story.add(Source.METADATA, "metadata", OpType.INFO, "members", nodes=["A", "B", "C"])
    story.broker("B", "member", taken_over=False, incarnation=7).elected("B", 2, isr="B").leads("B", 2, 0, isr="B")
    about = {"leader": 12, "isr": [12], "unclean": False}
    if told:
        story.broker("C", "elected", **TOPIC, **about, epoch=2, saw=[[12, 2]])  # it had read nothing new
    story.elected("B", 3, isr="B").broker("C", "elected", **TOPIC, **about, epoch=3, saw=[[12, 7]])
    losing, outage = takeovers(story.ops)[-1], outages(story.ops)[-1]
    assert gap is last_standing(story.ops, losing, outage, lambda _: False)
