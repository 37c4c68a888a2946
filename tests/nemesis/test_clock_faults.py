"""A clock fault changes what the node's own process reads of its clocks, and is undone; a pretended one is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.ability import Ability
from harness.clocks import RIGHT, Which
from harness.cluster.clock_fault import Seen, look
from harness.cluster.cluster import Cluster
from harness.cluster.fault import inject
from harness.launch import Address
from harness.model import PreconditionError, Verdict
from tests.clusters import running
from tests.faults import NEMESES
from tests.needs import needs
from tests.nemesis.every_fault import pretending
from tests.nemesis.simulated import played, refused, seen

WALL = ("clock-freeze", "clock-forward", "clock-back", "clock-strobe")
BOTH = ("clock-fast", "clock-slow")
# Fault -> what undoes it.
UNDONE = {**dict.fromkeys((*WALL, *BOTH), "clock-right"), "suspend": "wake"}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a fault makes a process read: how far the wall clock is ahead, and the rates of both clocks."""

    ahead_s: float
    wall: float
    monotonic: float


SHOWN = {
    "clock-freeze": Shown(0.0, 0.0, 1.0),
    "clock-forward": Shown(100.0, 1.0, 1.0),
    "clock-back": Shown(-100.0, 1.0, 1.0),
    "clock-strobe": Shown(30.0, 1.0, 1.0),
    "clock-fast": Shown(0.0, 10.0, 10.0),
    "clock-slow": Shown(0.0, 0.1, 0.1),
}


def assert_shown(fault: str, found: Seen) -> None:
    """Compare what was read with what the fault is; a clock at a rate moves away, so that it shows any time."""
    wanted = SHOWN[fault]
    for rate, (least, most) in ((wanted.wall, found.wall), (wanted.monotonic, found.monotonic)):
        assert least < 1.5 * rate + 0.05, found
        assert most >= rate / 2, found
    if fault in WALL and fault != "clock-freeze":
        assert all(abs(each - wanted.ahead_s) < 5 for each in found.ahead_s), found


@pytest.mark.parametrize("fault", UNDONE)
def test_fault_in_force_at_the_end_is_undone_before_the_final_reads(fault: str) -> None:
    result, ops = played(fault, f"produce m1 acks=all\n{fault} B\n")
    assert seen(ops, UNDONE[fault])
    assert Verdict.VALID is result.verdict, result.anomalies


def test_clock_of_a_node_that_is_down_is_set_right_for_its_next_process() -> None:
    text = "produce m1 acks=all\nclock-fast B\nkill B\nclock-right B\nexpire B\nrestart B\nproduce m2 acks=all\n"
    result, ops = played("clock-right", text)
    assert "it is down; its next process" in seen(ops, "clock-right")
    assert Verdict.VALID is result.verdict, result.anomalies


@pytest.mark.parametrize(("fault", "why"), [
    ("clock-right", "no fault set its clocks; expected one in force"),
    ("wake", "it is not suspended; expected a suspend before"),
])  # fmt: skip
def test_what_is_not_wrong_cannot_be_undone(fault: str, why: str) -> None:
    result, ops = played(fault, f"produce m1 acks=all\n{fault} B\n")
    assert f"{fault} B: {why}" == refused(ops, fault)
    assert Verdict.UNKNOWN is result.verdict


def test_node_suspended_while_its_clocks_run_slowly_wakes_with_them_slow() -> None:
    text = "produce m1 acks=all\nclock-slow B\nsuspend B\nwake B\nclock-right B\nproduce m2 acks=all\n"
    result, ops = played("wake", text)
    assert "monotonic 0.10 s/s now" in seen(ops, "wake")
    assert Verdict.VALID is result.verdict, result.anomalies


def in_turn(cluster: Cluster, faults: Sequence[str]) -> None:
    """Inject faults into A, one after another: pretended in vain, read by its process, and undone likewise."""
    for fault in faults:
        undone = UNDONE[fault]
        with pytest.raises(PreconditionError, match=f"{fault} A: its "), pretending(fault):
            inject(cluster, NEMESES, NEMESES[fault], "A")
        inject(cluster, NEMESES, NEMESES[fault], "A")
        if fault in SHOWN:
            assert_shown(fault, look(cluster, "A"))
        with pytest.raises(PreconditionError, match="still in force after its healing"), pretending(undone):
            inject(cluster, NEMESES, NEMESES[undone], "A")
        inject(cluster, NEMESES, NEMESES[undone], "A")
        assert [] == [*cluster.in_force]
        right = RIGHT[Which.WALL if fault in WALL else Which.BOTH]
        assert look(cluster, "A").shows(right), fault


@pytest.mark.slow
@pytest.mark.docker
@needs("faketime")
@pytest.mark.parametrize("faults", [("clock-freeze",), ("clock-fast", "suspend")], ids=["wall", "both"])
def test_process_in_a_container_reads_faults_of_its_clocks_and_their_end(
    tmp_path: Path, zookeeper: Address, faults: Sequence[str]
) -> None:
    with running(tmp_path / "run", zookeeper, "kip380", {"A": 6}, faults=faults, host="docker") as cluster:
        assert ["", ""] == [cluster.host.lacks(ability) for ability in (Ability.WALL_CLOCK, Ability.CLOCKS)]
        in_turn(cluster, faults)


@pytest.mark.slow
@needs("faketime")
def test_clocks_go_on_as_they_were_set_when_the_process_is_another(tmp_path: Path, zookeeper: Address) -> None:
    with running(tmp_path / "run", zookeeper, "kip380", {"A": 6}, faults=["clock-back"]) as cluster:
        inject(cluster, NEMESES, NEMESES["clock-back"], "A")
        inject(cluster, NEMESES, NEMESES["kill"], "A")
        inject(cluster, NEMESES, NEMESES["restart"], "A")
        assert_shown("clock-back", look(cluster, "A"))
        assert "it was started with clocks for wall" in _refused(cluster, "clock-fast")


def _refused(cluster: Cluster, fault: str) -> str:
    with pytest.raises(PreconditionError) as caught:
        inject(cluster, NEMESES, NEMESES[fault], "A")
    return str(caught.value)
