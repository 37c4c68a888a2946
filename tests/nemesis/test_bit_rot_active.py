"""A flipped byte in the segment that is written: a running follower heals by itself, a killed one as it starts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.cluster.cluster import Cluster
from harness.events import Corrupt, Recovered, Repaired, Truncate
from harness.logs.replica import BatchSeen
from harness.model import Kind, Verdict, events_of
from tests.nemesis.conftest import await_whole, inject, produce, roles
from tests.nemesis.simulated import played, seen

ON_BOTH = "produce m1 acks=all\nproduce m2 acks=all\nproduce m3 acks=all\n"
FAULT = "bit-rot-active"


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip380"])
def test_running_follower_throws_the_batch_away_and_puts_its_leaders_in_its_place(protocol: str) -> None:
    result, ops = played(FAULT, f"{ON_BOTH}{FAULT} B\nawait sound B\n", protocol)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert "batch of offsets 2 to 2" in seen(ops, FAULT)
    assert [("B", 2)] == [(op.process, told.base) for op, told in events_of(ops, Corrupt)]
    assert [("B", 2, 3)] == [(op.process, told.base, told.end) for op, told in events_of(ops, Repaired)]
    assert [] == [cut for _, cut in events_of(ops, Truncate) if cut.reason == "corrupt"]


def test_killed_follower_finds_it_as_it_recovers_its_log() -> None:
    steps = f"{ON_BOTH}kill B\n{FAULT} B\nexpire B\nawait isr = A\nrestart B\nawait isr = A B\n"
    result, ops = played(FAULT, steps)
    assert Verdict.VALID is result.verdict, result.anomalies
    assert [("crc", 2)] == [(told.reason, told.log_end_offset) for _, told in events_of(ops, Recovered)]


def test_follower_that_was_stopped_cleanly_trusts_its_log_and_finds_it_later() -> None:
    result, ops = played(FAULT, f"{ON_BOTH}stop B\n{FAULT} B\nrestart B\nawait sound B\n")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert ["clean"] == [told.reason for _, told in events_of(ops, Recovered)]
    assert ["B"] == [op.process for op, _ in events_of(ops, Corrupt)]


def test_record_whose_copies_were_all_damaged_is_lost_by_the_faults() -> None:
    result, _ = played(FAULT, f"{ON_BOTH}{FAULT} A\n{FAULT} B\npass 500ms\n")
    kinds = [(anomaly.kind, anomaly.ranges) for anomaly in result.anomalies]
    assert [(Kind.PERMITTED, ((2, 3),)), *[(Kind.BIT_ROT, ((2, 3),))] * 2] == kinds


def test_follower_that_becomes_leader_before_its_leader_has_answered_keeps_all_that_is_whole() -> None:
    steps = (
        f"{ON_BOTH}hold answers fetch B -> A\n{FAULT} B\nawait held answers fetch B -> A\npass 300ms\n"
        "kill A\nexpire A\nawait leader = B\nrelease all\nrestart A\n"
    )
    result, ops = played(FAULT, steps)
    assert [] == [cut for _, cut in events_of(ops, Truncate) if cut.reason == "corrupt"]
    assert ["B"] == [op.process for op, _ in events_of(ops, Corrupt)]
    assert {Kind.BIT_ROT} == {anomaly.kind for anomaly in result.anomalies}, result.anomalies


@pytest.mark.slow
def test_byte_on_a_real_disk_is_found_and_its_batch_copied_again(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    produce(cluster, 3)
    await_whole(cluster)
    told: list[tuple[str, str]] = []
    cluster.history.listeners.append(lambda op: told.append((op.process, op.f)) if op.f == "corrupt" else None)
    before = whole(cluster, follower)
    probe = inject(FAULT, cluster, follower)
    assert "batch's CRC-32C is" in probe or "cut there at once" in probe
    cluster.await_(lambda: bool(told) and whole(cluster, follower) == before, lambda: f"all whole on {follower}")
    assert [(follower, "corrupt")] == told
    await_whole(cluster)


def whole(cluster: Cluster, name: str) -> Sequence[BatchSeen] | None:
    """Return the batches of a replica's files, None if not all can be read."""
    log = cluster.log(name)
    return None if log is None or log.problems else log.batches
