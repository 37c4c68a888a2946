"""checkers/rules/unreported.py: losses where brokers report nothing, by what is seen of the replicas."""

from __future__ import annotations

from checkers.rules.lost import lost
from harness.model import Anomaly, Kind
from tests.checkers.seen import Seen


def replicated() -> Seen:
    """Return a history in which A, the leader, acknowledges m1 and m2 after 22 ms."""
    return Seen().acked("m1", 0, ms=11).acked("m2", 1, ms=21)


def without_m2(story: Seen, nodes: str = "ABC") -> Anomaly:
    """Return the one loss of the history, after which these nodes' logs end before m2."""
    for node in "ABC":
        story.log(node, *(("m1",) if node in nodes else ("m1", "m2")))
    (found,) = lost(story.ops)
    return found


def test_loss_of_a_leader_that_kept_its_power_is_proven_where_nothing_was_lost() -> None:
    found = without_m2(replicated().leads("B", 1, ms=50))
    assert (Kind.LOST, ("B",), 1) == (found.kind, found.nodes, found.epoch)


def test_loss_stays_one_where_an_in_sync_member_lacks_the_record_that_never_lost_its_power() -> None:
    """
    A acknowledged m2 and loses its power; B, which had m2, leads without it.

    Source:  KIP-101, Scenario 1.
    """
    story = replicated().fault("power-loss", "A", ms=30).leads("B", 1, ms=40, isr="BC")
    found = without_m2(story.fault("restart", "A", ms=60))
    assert (Kind.LOST, ("B",), 1) == (found.kind, found.nodes, found.epoch)
    assert "B lacks it in its final log, though no fault can have taken it" in found.sentence


def test_loss_beside_a_power_loss_that_took_no_copy_stays_one() -> None:
    """B cut m2 before it lost its power, and leads without it."""
    story = replicated().fetches("BA", 2, ms=25).fetches("BA", 1, ms=30)
    story.fault("power-loss", "ABC", ms=40).fault("restart", "B", ms=50).leads("B", 1, ms=300)
    found = without_m2(story)
    assert Kind.LOST is found.kind
    assert "B fetched from offset 1 of A at 0.030 s, after it had it" in found.sentence


def test_loss_is_permitted_where_every_copy_ended_by_a_power_loss() -> None:
    story = replicated().leads("B", 1, ms=30).fault("power-loss", "ABC", ms=40).fault("restart", "B", ms=50)
    found = without_m2(story.leads("B", 2, ms=300))
    # B had m2 when it was elected in epoch 1, before any power was lost.
    assert (Kind.PERMITTED, ("B",), 2) == (found.kind, found.nodes, found.epoch)
    assert "B lost unflushed bytes with its power" in found.sentence


def test_power_loss_that_was_made_good_permits_nothing() -> None:
    """B loses its power, copies m2 again and leads; later it lacks m2, and nothing says why."""
    story = (
        replicated().fault("power-loss", "B", ms=30).leads("A", 1, ms=35, isr="AC").fault("restart", "B", ms=40)
    )
    story.fetches("BA", 1, ms=200).fetches("BA", 2, ms=201).leads("A", 1, ms=210)
    assert Kind.LOST is without_m2(story.leads("B", 2, ms=300)).kind


def test_loss_is_unchecked_where_a_leader_lost_its_power_and_another_could_have_led() -> None:
    story = replicated().fault("power-loss", "B", ms=30).fault("restart", "B", ms=40).leads("B", 1, ms=300)
    found = without_m2(story)
    assert Kind.UNCHECKED is found.kind
    assert "A had it and could lead, and no broker reported why B was elected without it" in found.sentence


def test_loss_is_unchecked_where_members_may_have_followed_a_leader_that_lost_its_power() -> None:
    story = replicated().fault("power-loss", "B", ms=30).fault("restart", "B", ms=40).leads("B", 1, ms=100)
    story.acked("m3", 1, ms=150).leads("C", 2, ms=200).log("B", "m1", "m3").log("A", "m1", "m3").log(
        "C", "m1", "m3"
    )
    (found,) = lost(story.ops)
    assert Kind.UNCHECKED is found.kind


def test_loss_after_the_harness_deleted_files_is_not_blamed_on_the_protocol() -> None:
    story = replicated().fault("delete-active-segment", "B", ms=30, effect="log-cut").leads("B", 1, ms=100)
    assert Kind.LOST is not without_m2(story).kind


def test_loss_by_a_leader_that_leads_on_after_its_power_loss_is_unchecked_and_without_one_proven() -> None:
    """No election is seen: the broker restarts and goes on leading its epoch."""
    lost_power = replicated().fault("power-loss", "ABC", ms=30).fault("restart", "A", ms=40)
    assert Kind.UNCHECKED is without_m2(lost_power).kind
    killed = replicated().fault("power-loss", "C", ms=25).fault("kill", "A", ms=30).fault("restart", "A", ms=40)
    found = without_m2(killed)
    assert Kind.LOST is found.kind
    assert "A lacks it in its final log, though no fault can have taken it" in found.sentence
