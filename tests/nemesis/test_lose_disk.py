"""A node whose disk is lost copies all again; what no other in-sync replica had is lost, and that is permitted."""

from __future__ import annotations

from harness.model import Kind, Verdict
from tests.nemesis.simulated import played, refused, seen

ONLY_COPY = (
    "produce m1 acks=all\nkill B\nexpire B\nawait isr = A\nproduce m2 acks=all\nflush A\nkill A\nexpire A\n"
    "lose-disk A\nrestart A\nrestart B\nawait isr = A B\nproduce m3 acks=all\n"
)


def test_follower_with_an_empty_disk_copies_all_again() -> None:
    steps = "produce m1 acks=all\nstop B\nawait isr = A\nlose-disk B\nrestart B\nproduce m2 acks=all\n"
    result, ops = played("lose-disk", steps)
    assert "1 logs lost" == seen(ops, "lose-disk")
    assert Verdict.VALID is result.verdict, result.anomalies


def test_loss_of_the_only_in_sync_copy_is_permitted_though_it_was_flushed() -> None:
    result, _ = played("lose-disk", ONLY_COPY)
    assert Verdict.PERMITTED is result.verdict, result.anomalies
    assert {Kind.PERMITTED, Kind.LAST_STANDING} >= {each.kind for each in result.anomalies}
    assert any("lost it with its disk at" in each.sentence for each in result.anomalies)


def test_same_loss_without_a_lost_disk_is_none() -> None:
    result, _ = played("lose-disk", ONLY_COPY.replace("lose-disk A\n", ""))
    assert Verdict.VALID is result.verdict, result.anomalies


def test_node_that_runs_keeps_its_disk() -> None:
    _, ops = played("lose-disk", "produce m1 acks=all\nlose-disk B\n")
    assert "it runs; expected a node that is down" in refused(ops, "lose-disk")
