"""Partitions, jams, delays and losses take frames, stop what needs them, and are undone by `reconnect`."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.effect import ON_LINKS
from harness.events import Cut, Heal, Healed
from harness.model import OpType, Verdict, events_of
from tests.faults import NEMESES
from tests.nemesis.conftest import await_whole, heal, inject, produce, roles
from tests.nemesis.simulated import played, refused, seen

# Each fault, a node that it bites at if A leads and B follows, and the word for what it does to frames.
FAULTS = (
    ("partition-halves", "A", "lost"),
    ("partition-isolate", "A", "lost"),
    ("partition-ring", "A", "lost"),
    ("partition-one-way", "B", "lost"),
    ("partition-brokers", "C", "lost"),
    ("jam", "A", "held"),
    ("slow-link", "B", "late"),
    ("lossy-link", "A", "lost"),
)
PARTED = [(fault, node) for fault, node, _ in FAULTS if fault not in ("slow-link", "lossy-link")]


def test_every_fault_of_links_is_played_here() -> None:
    others = ["partition-clients", "zookeeper-late"]
    assert {*others, *(fault for fault, _, _ in FAULTS)} == {
        name for name, each in NEMESES.items() if each.effect in ON_LINKS
    }


@pytest.mark.parametrize(("fault", "node", "word"), FAULTS)
def test_fault_takes_frames_and_reconnect_says_how_many_on_which_link(fault: str, node: str, word: str) -> None:
    steps = f"produce m1 acks=all\n{fault} {node}\nproduce m2 acks=1\nreconnect {node}\nproduce m3 acks=all\n"
    result, ops = played(fault, steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert f"frames {word}: 1 on B -> A" == seen(ops, fault)
    assert seen(ops, "reconnect").startswith(f"{fault}: frames {word}: ")
    assert seen(ops, "reconnect").endswith("; open again: B -> A")


@pytest.mark.parametrize(("fault", "node"), PARTED)
def test_nothing_is_committed_while_the_follower_does_not_reach_its_leader(fault: str, node: str) -> None:
    steps = f"{fault} {node}\nproduce m1 acks=all refused for=300ms\nreconnect {node}\nproduce m2 acks=all\n"
    result, _ = played(fault, steps)
    assert Verdict.VALID is result.verdict, result.anomalies


@pytest.mark.parametrize(("fault", "node", "word"), FAULTS)
def test_what_is_in_force_at_the_end_is_healed_before_the_final_reads(fault: str, node: str, word: str) -> None:
    result, ops = played(fault, f"produce m1 acks=all\n{fault} {node}\nproduce m2 acks=1\n")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert f"{fault}: frames {word}: " in seen(ops, "reconnect")
    assert [OpType.OK] == [op.type for op, _ in events_of(ops, Healed)]


def test_fault_that_takes_no_frame_is_refused_and_its_rules_are_lifted() -> None:
    result, ops = played("one-way", "produce m1 acks=all\npartition-one-way A\n")
    expected = "partition-one-way A: no frame was lost within 3 s; expected one at least"
    assert (Verdict.UNKNOWN, expected) == (result.verdict, refused(ops, "partition-one-way"))
    cut = {rule.link for _, rule in events_of(ops, Cut)}
    assert {("A", "B"), ("A", "C")} == cut == {rule.link for _, rule in events_of(ops, Heal)}


def test_fault_that_is_in_force_already_and_heal_of_none_are_refused() -> None:
    _, ops = played("twice", "produce m1 acks=all\njam A\njam A\n")
    assert "jam A: in force already; expected a node without it" == refused(ops, "jam")
    _, ops = played("none", "produce m1 acks=all\nreconnect A\n")
    assert "reconnect A: its links are as they were; expected a fault of them" == refused(ops, "reconnect")


@pytest.mark.slow
def test_real_leader_parted_from_its_follower_is_not_copied_until_it_is_reconnected(cluster: Cluster) -> None:
    leader, follower = roles(cluster)
    end = cluster.log_end(follower)
    # What is lost first may be a request of the controller, too.
    assert f" -> {leader}" in inject("partition-isolate", cluster, leader)
    assert end + 1 == produce(cluster, 1, acks=1)
    assert (end + 1, end) == (cluster.log_end(leader), cluster.log_end(follower))
    probe = heal("partition-isolate", cluster, leader)
    assert "partition-isolate: frames lost: " in probe
    assert "; open again: " in probe
    await_whole(cluster)
    assert end + 1 == cluster.log_end(follower)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "word"), [("jam", "held"), ("slow-link", "late"), ("lossy-link", "lost")])
def test_real_links_that_wait_are_late_or_lose_frames_are_whole_again(
    cluster: Cluster, fault: str, word: str
) -> None:
    leader, follower = roles(cluster)
    assert f"frames {word}: " in inject(fault, cluster, leader)
    end = produce(cluster, 1, acks=1)
    assert f"{fault}: frames {word}: " in heal(fault, cluster, leader)
    cluster.await_(
        lambda: cluster.log_end(follower) == end,
        lambda: f"{follower} ends at {cluster.log_end(follower)}, not at {end}",
    )
