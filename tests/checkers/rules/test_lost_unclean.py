"""Losses by an unclean election: permitted only where one is allowed, and no member of the ISR could lead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.rules.lost import lost
from harness.model import Anomaly, Kind, OpType, Source
from tests.checkers.golden import M1, RECORDS
from tests.checkers.story import IDS, TOPIC, Story


def _kinds(found: list[Anomaly]) -> list[tuple[Kind, tuple[tuple[int, int], ...], tuple[str, ...]]]:
    return [(anomaly.kind, anomaly.ranges, anomaly.nodes) for anomaly in found]


def _ends_without_m2(story: Story) -> list[Anomaly]:
    return lost(story.healed().log("A", [(0, M1)]).read(*M1).done().ops)


@pytest.mark.parametrize("told_by", ["broker", "controller", "metadata"])
def test_lost_is_unclean_when_the_leader_came_from_outside_the_isr(told_by: str) -> None:
    assert [(Kind.UNCLEAN, ((3, 5),), ("A",))] == _kinds(_ends_without_m2(_leads_uncleanly(told_by, allowed=True)))


@pytest.mark.parametrize("told_by", ["broker", "controller", "metadata"])
def test_lost_is_not_permitted_when_unclean_election_is_off(told_by: str) -> None:
    (found,) = _ends_without_m2(_leads_uncleanly(told_by, allowed=False))
    assert Kind.LOST is found.kind
    assert "A was elected from outside the ISR, though unclean election is off" in found.sentence


def test_lost_is_not_permitted_when_a_member_of_the_isr_was_registered_at_an_unclean_election() -> None:
    story = _leads_uncleanly("controller", allowed=True)
    elected = next(op for op in story.ops if op.f == "elected")
    place = story.ops.index(elected)
    story.ops[place] = replace(elected, value=dict(elected.value) | {"saw": [[IDS["B"], 7], [IDS["A"], 8]]})
    (found,) = _ends_without_m2(story)
    assert "though B of it was registered" in found.sentence


@pytest.mark.parametrize(("fenced", "seen", "kind"), [
    ("yes", "away", Kind.UNCLEAN), ("yes", "started", Kind.UNCLEAN), ("yes", "", Kind.LOST),
    ("yes", "succeeded", Kind.UNCLEAN),
    ("no", "away", Kind.LOST), ("no", "started", Kind.LOST),
])  # fmt: skip
def test_lost_is_unclean_when_the_member_that_was_registered_had_bounced_and_not_said_so(
    fenced: str, seen: str, kind: Kind
) -> None:
    """It died again before it was ready; a controller takes it for failed, then for started (KIP-380)."""
    story = _leads_uncleanly("controller", allowed=True)
    setup = story.ops[0].value
    rules = setup["rules"] | {"fence_broker_epoch": fenced}
    story.ops[0] = replace(story.ops[0], value=setup | {"rules": rules})
    place = next(place for place, op in enumerate(story.ops) if op.f == "elected")
    elected = replace(story.ops[place], value=story.ops[place].value | {"saw": [[IDS["B"], 7], [IDS["A"], 8]]})
    rest, story.ops[place:] = story.ops[place + 1 :], []
    story.broker("C", "controller", epoch=1, active=True)
    if seen in ("started", "succeeded"):
        story.started("B")
    if seen == "succeeded":  # it decided before it heard of that
        story.broker("A", "controller", epoch=2, active=True)
    for nodes in (["A", "B"], ["A"], ["A", "B"]) if seen == "away" else (["A", "B"],):
        story.add(Source.METADATA, "metadata", OpType.INFO, "members", nodes=nodes)
    for op in (elected, *rest):
        story.add(op.source, op.process, op.type, op.f, **op.value)
    assert [kind] == [anomaly.kind for anomaly in _ends_without_m2(story)]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("unclean", [False, True])
def test_lost_is_unclean_when_the_leader_that_was_replaced_wrote_on_whoever_led_since(
    *, unclean: bool, again: bool
) -> None:
    """A led by an unclean election, and again by a clean one, when B, cut off, wrote m2 and committed it alone."""
    story = Story(RECORDS, "kip101", unclean=True).started("A", "B").elected("B", 0)
    story.leads("B", 0, 0).follows("A", "B", 0, 0).sends("m1").append("B", 0, 3, 0, "leader")
    story.append("A", 0, 3, 0, "follower").passes("B", 3).acked("m1", 0)
    story.elected("B", 0, isr="B" if unclean else "AB").shrinks("B", "B", 0)
    story.elected("A", 1, isr="A", version=2).leads("A", 1, 3, isr="A", unclean=unclean)
    if again:
        story.elected("A", 2, isr="A").leads("A", 2, 3, isr="A")
    story.sends("m2").append("B", 3, 5, 0, "leader").passes("B", 5).acked("m2", 3)
    (found,) = _ends_without_m2(story)
    assert (Kind.UNCLEAN if unclean else Kind.LOST) is found.kind


@pytest.mark.parametrize("member", [False, True])
def test_lost_is_unclean_though_a_replica_outside_the_isr_had_cut_its_copy_before_the_record_was_committed(
    *, member: bool
) -> None:
    """C copied m2 and cut it to follow another leader; then B committed it alone. As a member C must hold it."""
    story = Story(RECORDS, "kip101", replicas="ABC", unclean=True).started("A", "B", "C")
    story.elected("B", 0, isr="ABC").leads("B", 0, 0, isr="ABC").follows("A", "B", 0, 0).follows("C", "B", 0, 0)
    story.sends("m1").append("B", 0, 3, 0, "leader").append("A", 0, 3, 0, "follower")
    story.append("C", 0, 3, 0, "follower").passes("B", 3).acked("m1", 0)
    isr = "BC" if member else "B"
    story.elected("B", 0, isr=isr, version=1).shrinks("B", isr, 0)
    story.sends("m2").append("B", 3, 5, 0, "leader").append("C", 3, 5, 0, "follower")
    story.cut("C", 5, 3, "epoch-answer").passes("B", 5).acked("m2", 3).fault("kill", "B")
    story.elected("A", 1, isr="A", version=2).leads("A", 1, 3, isr="A", unclean=True)
    assert [Kind.LOST if member else Kind.UNCLEAN] == [found.kind for found in _ends_without_m2(story)]


@pytest.mark.parametrize("member", [False, True])
def test_lost_is_unclean_when_a_later_leader_alone_committed_what_its_writer_had_lost(*, member: bool) -> None:
    """B, with A as its ISR, wrote m2 and cut it lawfully to follow A; C had copied m2 and committed it."""
    story = Story(RECORDS, "kip101", replicas="ABC", unclean=True).started("A", "B", "C")
    story.elected("B", 0).leads("B", 0, 0).follows("A", "B", 0, 0).follows("C", "B", 0, 0)
    story.sends("m1").append("B", 0, 3, 0, "leader").append("A", 0, 3, 0, "follower")
    story.append("C", 0, 3, 0, "follower").passes("B", 3).acked("m1", 0)
    story.sends("m2", 1).append("B", 3, 5, 0, "leader").acked("m2", 3, 1).append("C", 3, 5, 0, "follower")
    story.elected("A", 1).leads("A", 1, 3).follows("B", "A", 1, 5).cut("B", 5, 3, "epoch-answer", 1)
    isr = "BC" if member else "C"
    story.elected("C", 2, isr=isr).leads("C", 2, 5, isr=isr, unclean=True).passes("C", 5).fault("kill", "C")
    story.elected("A", 3, isr="A").leads("A", 3, 3, isr="A", unclean=True)
    assert [Kind.COMMITTED_LOST if member else Kind.UNCLEAN] == [found.kind for found in _ends_without_m2(story)]


def _leads_uncleanly(told_by: str, *, allowed: bool) -> Story:
    """Return a history in which A leads without m2, which only B, the ISR, had copied."""
    story = Story(RECORDS, "kip101", unclean=allowed).started("A", "B").elected("B", 0)
    story.leads("B", 0, 0).follows("A", "B", 0, 0).sends("m1").append("B", 0, 3, 0, "leader")
    story.append("A", 0, 3, 0, "follower").passes("B", 3).acked("m1", 0)
    story.elected("B", 0, isr="B", version=1).shrinks("B", "B", 0)
    story.sends("m2").append("B", 3, 5, 0, "leader").passes("B", 5).acked("m2", 3)
    story.fault("kill", "B")
    if told_by == "controller":
        story.broker("C", "elected", **TOPIC, leader=11, epoch=1, isr=[11], unclean=True)
    story.elected("A", 1, isr="A", version=9 if told_by == "controller" else 2)
    return story.leads("A", 1, 3, isr="A", unclean=told_by == "broker")
