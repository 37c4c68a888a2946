"""A node whose disk is lost copies all again; what no other in-sync replica had is lost, and that is permitted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from harness.ability import Ability
from harness.model import Kind, Verdict
from nemesis.lose_disk import why_not
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


def test_systems_that_keep_the_metadata_on_their_disks_do_not_lose_half_of_them() -> None:
    """Nothing would be left that could say what the cluster had."""

    def why(*emptied: str, services: tuple[str, ...] = (), nodes: str = "ABCD") -> str:
        target = SimpleNamespace(abilities={Ability.CONTROLLER}, services=services)
        traits = SimpleNamespace(begins_flushed=False)
        ids = dict.fromkeys(nodes, 0)
        cluster = SimpleNamespace(target=target, ids=ids, emptied={*emptied}, traits=traits)
        return why_not(cast(Any, cluster), "A")

    assert ["", "", ""] == [why(), why("A"), why(nodes="ABC")]
    assert "A, B would have lost their disks, of 4 that have the metadata" == why("B")
    assert "A, C would have lost their disks, of 3 that have the metadata" == why("C", nodes="ABC")
    assert "" == why("B", "C", "D", services=("zookeeper",))


def test_systems_whose_disks_say_who_a_node_is_keep_one_disk_of_the_isr() -> None:
    """A broker with an empty disk is another broker, and may not lead in the place of the one before."""

    def why(isr: tuple[str | None, ...], *emptied: str) -> str:
        cluster = SimpleNamespace(
            target=SimpleNamespace(abilities={Ability.CONTROLLER}, services=("controller",)),
            ids=dict.fromkeys("ABC", 0),
            emptied={*emptied},
            traits=SimpleNamespace(begins_flushed=True),
            named=SimpleNamespace(isr=lambda: isr),
        )
        return why_not(cast(Any, cluster), "A")

    assert ["", "", ""] == [why(("A", "B")), why(("B", "C"), "B"), why(("A", "B", "C"), "B")]
    said = "A is the last of the ISR with its disk, and would come back as another node"
    assert [said, said] == [why(("A",)), why(("A", "B"), "B")]
