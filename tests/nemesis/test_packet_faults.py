"""Packets of one node are dropped, throttled or lost below the fabric; all that is undone by `pass-packets`."""

from __future__ import annotations

import pytest

from harness.cluster.cluster import Cluster
from harness.effect import Effect
from harness.events import Healed
from harness.model import OpType, Verdict, events_of
from harness.packets import Packets
from tests.faults import NEMESES
from tests.needs import needs
from tests.nemesis.conftest import await_whole, heal, inject, roles
from tests.nemesis.every_fault import pretending
from tests.nemesis.simulated import played, refused, seen

FAULTS = {"drop-packets": Packets.DROPPED, "throttle": Packets.THROTTLED, "lossy-packets": Packets.LOSSY}


def test_every_fault_of_packets_is_played_here() -> None:
    assert list(FAULTS) == [name for name, each in NEMESES.items() if each.effect is Effect.PACKETS_IMPAIRED]
    assert {fault: NEMESES[fault].needs for fault in FAULTS} == {
        "drop-packets": ("packets-dropped",),
        "throttle": ("packets-throttled",),
        "lossy-packets": ("packets-lossy",),
    }


@pytest.mark.parametrize(("fault", "how"), FAULTS.items())
def test_fault_says_how_many_packets_it_hit_and_what_is_in_force_at_the_end_is_healed(
    fault: str, how: Packets
) -> None:
    result, ops = played(fault, f"produce m1 acks=all\n{fault} A\npass 300ms\n")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert f"packets {how}: 1" == seen(ops, fault)
    name, hit, count = seen(ops, "pass-packets").rpartition(f": packets {how}: ")
    assert (fault, True) == (name, bool(hit)) and int(count) >= 1
    assert [OpType.OK] == [op.type for op, _ in events_of(ops, Healed)]


def test_nobody_reaches_a_leader_whose_packets_are_dropped_and_it_reaches_others() -> None:
    steps = "produce m1 acks=all\ndrop-packets A\nproduce m2 acks=all refused for=300ms\npass-packets A\n"
    result, _ = played("leader", f"{steps}produce m3 acks=all\n")
    assert Verdict.VALID is result.verdict, result.anomalies


def test_node_to_which_nobody_sends_has_no_packets_to_drop_and_the_fault_is_refused() -> None:
    result, ops = played("silent", "produce m1 acks=all\ndrop-packets C\n")
    expected = "drop-packets C: no packet was dropped within 3 s; expected one at least"
    assert (Verdict.UNKNOWN, expected) == (result.verdict, refused(ops, "drop-packets"))


def test_command_to_a_node_whose_packets_are_dropped_arrives_once_they_pass() -> None:
    steps = "produce m1 acks=all\ndrop-packets A\nexpire A\nawait leader = B\npass 300ms\npass-packets A\n"
    result, _ = played("command", f"{steps}await isr = A B\nproduce m2 acks=all\n")
    assert Verdict.VALID is result.verdict, result.anomalies


def test_follower_that_is_sent_too_little_leaves_the_isr_and_comes_back() -> None:
    busy = "produce m1 acks=all\nproduce m2 acks=1 meanwhile\n"
    steps = f"{busy}lossy-packets B\npass 500ms\npass-packets B\nawait isr = A B\nproduce m3 acks=all\n"
    result, _ = played("lossy", steps, settings="replica_lag_ms_max=100")
    assert Verdict.VALID is result.verdict, result.anomalies


@pytest.mark.parametrize("fault", FAULTS)
def test_one_seed_is_one_run(fault: str) -> None:
    steps = f"produce m1 acks=all\n{fault} A\npass 300ms\npass-packets A\nproduce m2 acks=all\n"
    (_, once), (_, again) = (played(fault, steps, seed=7) for _ in range(2))
    assert list(once) == list(again)


def test_fault_that_is_in_force_already_and_heal_of_none_are_refused() -> None:
    _, ops = played("twice", "produce m1 acks=all\nthrottle A\nthrottle A\n")
    assert "throttle A: in force already; expected a node without it" == refused(ops, "throttle")
    _, ops = played("none", "produce m1 acks=all\npass-packets A\n")
    assert "pass-packets A: all its packets pass; expected a fault of them" == refused(ops, "pass-packets")


def test_fault_that_is_only_pretended_is_told_from_another_of_the_node() -> None:
    with pretending("throttle"):
        result, ops = played("beside", "produce m1 acks=all\ndrop-packets A\nthrottle A\n")
    assert Verdict.UNKNOWN is result.verdict
    assert "throttle A: its packets pass; expected some to be made to wait (done)" == refused(ops, "throttle")


def test_two_faults_of_one_node_are_undone_together() -> None:
    steps = "produce m1 acks=all\nthrottle A\ndrop-packets A\npass-packets A\nproduce m2 acks=all\n"
    result, ops = played("both", steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert ["throttle", "drop-packets"] == [each.split(":")[0] for each in seen(ops, "pass-packets").split("; ")]


@pytest.mark.slow
@pytest.mark.root
@needs("iptables")
def test_real_leader_whose_packets_are_dropped_is_heard_of_again(cluster: Cluster) -> None:
    leader, _ = roles(cluster)
    assert "packets dropped: " in inject("drop-packets", cluster, leader)
    assert "drop-packets: packets dropped: " in heal("drop-packets", cluster, leader)
    await_whole(cluster)
