"""A flipped byte of an old batch is served to nobody: its leader refuses, and copies it again once it follows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.events import Corrupt, Fetch, Read, Repaired
from harness.model import Kind, Op, OpType, Verdict, events_of
from targets.simulator.engine.machines import SimMachines
from tests.nemesis.simulated import played, refused, seen

ON_BOTH = "produce m1 acks=all\nproduce m2 acks=all\nproduce m3 acks=all\n"
ALONE = "hold requests fetch B -> A\nproduce m1 acks=1\nproduce m2 acks=1\nproduce m3 acks=1\n"
SMALL = "segment_bytes=150"
HEAL = "elect B\nawait leader = B\nawait sound A\n"
FAULT = "bit-rot-closed"


def reports(ops: Sequence[Op]) -> list[tuple[str, int, str]]:
    """Return who reported damage, where, and in which role."""
    return [(op.process, told.base, told.role) for op, told in events_of(ops, Corrupt)]


def test_leader_refuses_the_batch_and_once_it_follows_it_copies_it_again() -> None:
    result, ops = played(FAULT, f"{ON_BOTH}{FAULT} A\n{HEAL}", settings=SMALL)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert seen(ops, FAULT).startswith("log-0/00000000000000000000.log at byte 82: 0x31 -> 0x30, batch of offsets")
    assert "CRC-32C" in seen(ops, FAULT)
    assert ["A"] == [node for node, _, _ in reports(ops)]
    assert ["A"] == [op.process for op, _ in events_of(ops, Repaired)]


def test_batch_that_a_leader_keeps_is_read_by_nobody_and_permitted() -> None:
    result, ops = played(FAULT, f"{ON_BOTH}{FAULT} A\npass 500ms\n", settings=SMALL)
    assert [(Kind.BIT_ROT, ("A",), ((0, 2),))] == [(a.kind, a.nodes, a.ranges) for a in result.anomalies]
    assert Verdict.PERMITTED is result.verdict
    assert [("A", 0, "leader")] == reports(ops)
    (read,) = [(op, read) for op, read in events_of(ops, Read) if op.type is not OpType.INVOKE]
    assert (OpType.FAIL, "CORRUPT_MESSAGE at 0") == (read[0].type, read[1].error)


def test_follower_that_has_no_copy_yet_gets_what_is_before_the_damage_and_no_more() -> None:
    result, ops = played(FAULT, f"{ALONE}{FAULT} A\nrelease all\npass 1000ms\n", settings="segment_bytes=100")
    copied = [fetch.offset for _, fetch in events_of(ops, Fetch) if fetch.link == ("B", "A")]
    assert 2 == max(copied), "m1 is before the damaged m2"
    assert {Kind.STUCK, Kind.BIT_ROT} == {anomaly.kind for anomaly in result.anomalies}


def test_cluster_whose_damaged_leader_keeps_a_follower_from_catching_up_is_whole_under_another_leader() -> None:
    steps = f"{ON_BOTH}stop C\nexpire C\nawait isr = A B\nlose-disk C\n{FAULT} A\nrestart C\nsettle\n"
    result, ops = played(FAULT, steps, settings=SMALL, nodes="A B C replicas, D controller")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert [("A", 0, "leader")] == reports(ops)
    assert seen(ops, "elect").startswith("broker ")
    assert ["A"] == [op.process for op, _ in events_of(ops, Repaired)]


def test_log_of_one_segment_has_none_that_is_closed() -> None:
    _, ops = played(FAULT, f"produce m1 acks=all\n{FAULT} A\n")
    assert "no closed segment with a batch of log-0" in refused(ops, FAULT)


def test_flip_that_changes_nothing_did_not_bite(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SimMachines.flip

    def flip_twice(machines: SimMachines, *asked: object) -> object:
        log = next(iter(machines._world.nodes["A"].disk.logs.values()))
        before = [list(segment.batches) for segment in log.segments]
        done = real(machines, *asked)  # type: ignore[arg-type]
        for segment, batches in zip(log.segments, before, strict=True):
            segment.batches = batches
        log.changes += 1
        return done

    monkeypatch.setattr(SimMachines, "flip", flip_twice)
    _, ops = played(FAULT, f"{ON_BOTH}{FAULT} A\n", settings=SMALL)
    assert "A's files are read as if nothing had changed" in refused(ops, FAULT)
