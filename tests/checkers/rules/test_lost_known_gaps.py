"""checkers/rules/lost.py: losses that Kafka does not promise to prevent, by the gap's name, and those beside."""

from __future__ import annotations

import pytest

from harness.model import Kind, OpType, Source
from tests.checkers.golden import RECORDS
from tests.checkers.story import TOPIC, Story
from tests.checkers.without_m2 import ends_without_m2, fails_over, kinds


def _three() -> Story:
    """Return a history in which B leads A and C; all three have m1 and m2, which are acknowledged."""
    story = Story(RECORDS, "kip380", replicas=("A", "B", "C")).started("A", "B", "C").elected("B", 0, isr="ABC")
    story.leads("B", 0, 0, isr="ABC").follows("A", "B", 0, 0).follows("C", "B", 0, 0).sends("m1").sends("m2")
    for node in "BAC":
        story.append(node, 0, 5, 0, "leader" if node == "B" else "follower")
    return story.passes("B", 5).acked("m1", 0).acked("m2", 3)


def _returns_without_m2(story: Story) -> Story:
    return story.fault("power-loss", "A").fault("restart", "A").started("A").recovered("A", 3)


def test_lost_names_the_hole_when_no_controller_saw_the_losing_leader_go() -> None:
    """Source: KIP-966; Kafka with its state in ZooKeeper: a new controller cannot know that A was down."""
    story = _returns_without_m2(_three()).broker("C", "controller", epoch=2, active=True)
    (found,) = ends_without_m2(fails_over(story, isr="AC"))
    assert Kind.RETURNED == found.kind
    assert "a known gap" in found.sentence


def test_lost_is_not_permitted_when_the_controller_stood_all_the_while() -> None:
    """KAFKA-1120: the controller could have seen from A's registration that A was down (KIP-380)."""
    story = _three().broker("C", "controller", epoch=1, active=True)
    assert [Kind.LOST] == [a.kind for a in ends_without_m2(fails_over(_returns_without_m2(story), isr="AC"))]


def test_lost_names_the_hole_when_a_write_that_was_under_way_let_the_losing_leader_in() -> None:
    """Source: KIP-903, "stale ISR expansion"."""
    story = _returns_without_m2(_three().elected("B", 0, isr="BC", version=1))
    story.elected("B", 0, isr="ABC", version=2)
    assert [Kind.RETURNED] == [a.kind for a in ends_without_m2(fails_over(story, isr="AC"))]


@pytest.mark.parametrize(("fetched", "kind"), [(False, Kind.RETURNED), (True, Kind.LOST)])
def test_lost_names_the_hole_until_the_losing_leader_has_fetched_in_its_new_life(
    fetched: bool, kind: Kind
) -> None:
    """
    A leader lets in who fetches from it: not one that has only been told whom to follow.

    Source: KIP-903, "stale ISR expansion".
    """
    story = _returns_without_m2(_three().elected("B", 0, isr="BC", version=1)).follows("A", "B", 0, 3)
    if fetched:
        story.add(Source.FABRIC, "fabric", OpType.INFO, "fetch", **TOPIC, link=["A", "B"], offset=3)
    story.elected("B", 0, isr="ABC", version=2)
    assert [kind] == [a.kind for a in ends_without_m2(fails_over(story, isr="AC"))]


def test_lost_is_not_excused_by_a_new_controller_when_the_losing_leader_cut_the_record() -> None:
    story = _three().broker("C", "controller", epoch=2, active=True).cut("A", 5, 3, "high-watermark")
    assert [Kind.LOST] == [a.kind for a in ends_without_m2(fails_over(story, isr="AC"))]


def _comes_back_alone(story: Story, isr: str = "A") -> Story:
    """Add ops in which A loses m2 in a power loss, registers again, and is elected as the only candidate."""
    story = _returns_without_m2(story).broker("A", "member", taken_over=True)
    return story.elected("A", 3, isr=isr).leads("A", 3, 3, isr=isr)


def _leads_alone(story: Story) -> Story:
    """Add ops in which B and C leave the ISR and A leads alone; all three have m2."""
    story.fault("expire", "B").fault("expire", "C").elected("A", 1, isr="A")
    return story.leads("A", 1, 5, isr="A")


def test_lost_names_the_hole_when_the_last_of_the_isr_comes_back_without_the_record() -> None:
    """Source: KIP-966. B and C kept m2, but may not lead."""
    (found,) = ends_without_m2(_comes_back_alone(_leads_alone(_three())))
    assert Kind.LAST_STANDING == found.kind
    assert "a known gap: it was the last member of the ISR" in found.sentence


def test_lost_names_the_hole_when_the_log_of_the_last_of_the_isr_was_cut_while_it_was_down() -> None:
    """A was killed, which takes nothing; then a segment was deleted. B and C kept m2, but may not lead."""
    story = _leads_alone(_three()).fault("kill", "A").fault("delete-active-segment", "A").fault("restart", "A")
    story.started("A").recovered("A", 3).broker("A", "member", taken_over=True)
    (found,) = ends_without_m2(story.elected("A", 3, isr="A").leads("A", 3, 3, isr="A"))
    assert Kind.LAST_STANDING == found.kind


def test_lost_is_not_permitted_when_the_last_of_the_isr_was_only_killed() -> None:
    story = _leads_alone(_three()).fault("kill", "A").fault("restart", "A").started("A")
    story.recovered("A", 3).broker("A", "member", taken_over=True)
    (found,) = ends_without_m2(story.elected("A", 3, isr="A").leads("A", 3, 3, isr="A"))
    assert Kind.LOST == found.kind


def test_lost_names_the_hole_when_the_leader_is_told_of_before_the_state_that_made_it_one() -> None:
    """The watch of ZooKeeper may be later than the broker's report."""
    story = _returns_without_m2(_leads_alone(_three())).broker("A", "member", taken_over=True, incarnation=9)
    story.broker("C", "elected", **TOPIC, leader=11, epoch=3, isr=[11], unclean=False, saw=[[11, 9]])
    story.leads("A", 3, 3, isr="A").elected("A", 3, isr="A")
    assert [Kind.LAST_STANDING] == [found.kind for found in ends_without_m2(story)]


def test_lost_names_the_hole_when_the_decision_is_told_of_before_the_registration_that_it_saw() -> None:
    """What A hears of ZooKeeper may be late."""
    story = _returns_without_m2(_leads_alone(_three()))
    for epoch in (3, 4):
        story.broker("C", "elected", **TOPIC, leader=11, epoch=epoch, isr=[11], unclean=False, saw=[[11, 9]])
        story.elected("A", epoch, isr="A")
        if epoch == 3:
            story.broker("A", "member", taken_over=True, incarnation=9)
        story.leads("A", epoch, 3, isr="A")
    assert [Kind.LAST_STANDING] == [found.kind for found in ends_without_m2(story)]


def test_lost_names_the_hole_when_all_others_of_the_isr_were_on_their_way_out_of_it() -> None:
    """B and C bounced, so the controller had to remove them; it had not done so when A came back."""
    story = _three().elected("A", 1, isr="ABC").leads("A", 1, 5, isr="ABC")
    story.fault("kill", "B", "C").fault("restart", "B", "C").started("B", "C")
    assert [Kind.LAST_STANDING] == [a.kind for a in ends_without_m2(_comes_back_alone(story))]


def test_lost_is_not_permitted_when_another_of_the_isr_stood_when_the_losing_leader_came_back() -> None:
    """C should have led: it left the ISR only after A came back."""
    story = _three().fault("expire", "B").elected("A", 1, isr="AC").leads("A", 1, 5, isr="AC")
    assert [Kind.LOST] == [a.kind for a in ends_without_m2(_comes_back_alone(story))]


@pytest.mark.parametrize(("saw", "kind"), [(7, Kind.LAST_STANDING), (9, Kind.LOST)])
def test_lost_asks_who_stood_when_a_controller_decided_that_had_seen_the_losing_leader_return(
    saw: int, kind: Kind
) -> None:
    """Epoch 2 may have been decided on a view from before A's return; B and C expired between it and epoch 3."""
    story = _returns_without_m2(_three().elected("A", 1, isr="ABC").leads("A", 1, 5, isr="ABC"))
    story.broker("A", "member", taken_over=True, incarnation=9).elected("A", 2, isr="ABC")
    story.broker("C", "elected", **TOPIC, leader=11, epoch=2, isr=[11, 12, 13], unclean=False, saw=[[11, saw]])
    story.fault("expire", "B").fault("expire", "C").elected("A", 3, isr="A")
    story.broker("C", "elected", **TOPIC, leader=11, epoch=3, isr=[11], unclean=False, saw=[[11, 9]])
    (found,) = ends_without_m2(story.leads("A", 3, 3, isr="A"))
    assert kind is found.kind


@pytest.mark.parametrize(("leader", "kind"), [(None, Kind.LAST_STANDING), ("A", Kind.LOST)])
def test_lost_names_the_hole_when_all_of_the_isr_came_back_at_once_and_so_stayed_in_it(
    leader: str | None, kind: Kind
) -> None:
    """The controller found that nobody could lead, and then A as good as any; B and C had m2."""
    story = _returns_without_m2(_three().elected("A", 1, isr="ABC").leads("A", 1, 5, isr="ABC"))
    story.broker("A", "member", taken_over=True, incarnation=9)
    told = [11, 12, 13]
    for epoch, leads in ((2, leader), (3, "A")):
        about = {"leader": 11 if leads else -1, "epoch": epoch, "isr": told, "unclean": False, "saw": [[11, 9]]}
        story.elected(leads, epoch, isr="ABC").broker("C", "elected", **TOPIC, **about)
    (found,) = ends_without_m2(story.leads("A", 3, 3, isr="ABC"))
    assert kind is found.kind


def test_lost_does_not_blame_who_takes_up_an_epoch_older_than_the_records() -> None:
    """B was paused, and learns that it leads epoch 1 when A has long led epoch 2."""
    story = Story(RECORDS, "kip380", replicas=("A", "B", "C")).started("A", "B", "C").elected("A", 2, isr="AC")
    story.leads("A", 2, 0, isr="AC").sends("m1").sends("m2").append("A", 0, 5, 2, "leader")
    for node, end in (("B", 3), ("C", 5)):
        story.follows(node, "A", 2, 0).append(node, 0, end, 2, "follower")
    story.passes("A", 5).acked("m1", 0).acked("m2", 3)
    story.fault("expire", "B").fault("expire", "C").elected("A", 2, isr="A").leads("B", 1, 3)
    (found,) = ends_without_m2(_comes_back_alone(story))
    assert (Kind.LAST_STANDING, ("A",)) == (found.kind, found.nodes)


def test_lost_blames_the_first_leader_without_the_record_though_an_older_office_is_told_of_later() -> None:
    """B, which wrote m2, reports that it leads epoch 1 when A already leads epoch 2: m2 has not come back."""
    story = Story(RECORDS, "kip380").started("A", "B").elected("B", 0).leads("B", 0, 0).follows("A", "B", 0, 0)
    story.sends("m1").append("B", 0, 3, 0, "leader").append("A", 0, 3, 0, "follower").acked("m1", 0)
    story.sends("m2").append("B", 3, 5, 0, "leader").acked("m2", 3, acks=1)
    story.elected("B", 1).elected("A", 2).leads("A", 2, 3).leads("B", 1, 5)
    story.follows("B", "A", 2, 5).cut("B", 5, 3, "epoch-answer", epoch=2).elected("B", 3).leads("B", 3, 3)
    assert [(Kind.UNPROMISED, ((3, 5),), ("A",))] == kinds(ends_without_m2(story, "B"))


def _others_go_after_the_return(story: Story, *, decided: bool) -> Story:
    """Add ops: C leaves the ISR, A loses m2 and registers, an election if `decided`, then B's session ends."""
    story = story.fault("expire", "C").elected("A", 1, isr="AB").leads("A", 1, 5, isr="AB")
    story = _returns_without_m2(story).broker("A", "member", taken_over=True)
    if decided:
        story.elected("A", 2, isr="AB")
    story.fault("zombie", "B").elected("A", 3, isr="A")
    return story.leads("A", 3, 3, isr="A")


def test_lost_names_the_hole_when_the_others_went_before_the_return_was_decided_about() -> None:
    """In one reading the controller finds that A and B were gone, and that only A came back."""
    story = _others_go_after_the_return(_three(), decided=False)
    assert [Kind.LAST_STANDING] == [a.kind for a in ends_without_m2(story)]


def test_lost_is_not_permitted_when_the_others_went_after_the_return_was_decided_about() -> None:
    story = _others_go_after_the_return(_three(), decided=True)
    assert [Kind.LOST] == [a.kind for a in ends_without_m2(story)]


def test_lost_is_not_permitted_when_the_losing_leader_led_before_it_was_registered() -> None:
    """
    A command to A's previous process must not make A lead.

    Source:  KIP-380.
    """
    story = _returns_without_m2(_leads_alone(_three())).elected("A", 3, isr="A").leads("A", 3, 3, isr="A")
    assert [Kind.LOST] == [a.kind for a in ends_without_m2(story.broker("A", "member", taken_over=True))]
