"""Retention deletes whole files by age and size, on each replica by itself, and nothing uncommitted."""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core.events import Effect, Tick
from targets.broker.core.rules import PROTOCOLS, Rules, with_rule
from targets.broker.core.state import NS_PER_MS
from tests.broker.core.asks import fetch, leader_of
from tests.broker.core.bench import Bench
from tests.broker.core.memory import TP, MemoryLog, batch

CHECK_MS = 1_000
# Of the bench's batches: a batch is a file of its own, and its crc serves as its time.
SIZE = batch().size
TIMES = (100, 200, 300, 250, 400)


def holding(rules: Rules | str = "kip380", *, committed: int = 5, lead: bool = True, **limits: Any) -> Bench:
    """Return a replica of five records in five files, of which so many are committed."""
    bench = leader_of(0, isr=(1, 2), rules=rules, retention_check_ms=CHECK_MS, **limits)
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    log.append_as_leader([batch(crc=time) for time in TIMES], 1)
    bench.request(fetch(committed, replica=2))
    assert committed == bench.replica.high_watermark
    if not lead:
        bench.command(leader=2, epoch=9)
    return bench


def look(bench: Bench, wall_ms: int = -1) -> list[tuple[int, int, str]]:
    """Let the retention timer fire when the wall clock shows that time; return (from, to, reason) of each move."""
    bench.now_ns += CHECK_MS * NS_PER_MS
    effects: list[Effect] = bench.broker.step(bench.now_ns, Tick(), wall_ms=wall_ms)
    return [(seen["from"], seen["to"], seen["reason"]) for seen in bench.observed("log-start", effects)]


@pytest.mark.parametrize(
    ("size", "to"),
    [(10 * SIZE, 0), (5 * SIZE, 0), (4 * SIZE + 1, 0), (4 * SIZE, 1), (2 * SIZE + 1, 2), (2 * SIZE, 3), (1, 4)],
)
def test_files_beyond_the_size_are_deleted_and_as_much_as_that_stays(size: int, to: int) -> None:
    """Source: Kafka, UnifiedLog.deleteRetentionSizeBreachedSegments: "diff - segment.size >= 0"."""
    bench = holding(retention_bytes=size)
    assert ([(0, to, "retention-size")] if to else []) == look(bench)
    assert [] == look(bench)


@pytest.mark.parametrize(
    ("wall_ms", "to"), [(1_100, 0), (1_101, 1), (1_201, 2), (1_300, 2), (1_301, 4), (1_401, 5), (-1, 0)]
)
def test_files_are_deleted_from_the_oldest_on_while_all_of_each_is_too_old(wall_ms: int, to: int) -> None:
    """The fourth file is older than the third, and waits for it. The newest goes too, once another was begun."""
    bench = holding(retention_ms=1_000)
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    assert ([(0, to, "retention-time")] if to else []) == look(bench, wall_ms)
    assert (to == 5) == bool(log.rolls)


@pytest.mark.parametrize("lead", [True, False], ids=["leader", "follower"])
def test_file_that_is_not_committed_stays(lead: bool) -> None:
    """Source: KAFKA-5634; Kafka, UnifiedLogTest, shouldDeleteLocalLogSegments… only up to the high watermark."""
    bench = holding(retention_bytes=1, committed=2, lead=lead)
    assert [(0, 2, "retention-size")] == look(bench)


def test_newest_file_that_is_not_committed_stays_however_old_it_is() -> None:
    """No other file is begun for it: what the newest one holds may still be cut."""
    bench = holding(retention_ms=1_000, committed=2)
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    assert [(0, 2, "retention-time")] == look(bench, 10**6)
    assert (0, 5) == (log.rolls, log.end_offset)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_file_that_is_not_committed_goes_where_a_release_let_it(protocol: str) -> None:
    bench = holding(protocol, retention_bytes=1, committed=2)
    past = PROTOCOLS[protocol].delete_past_high_watermark
    assert [(0, 4 if past else 2, "retention-size")] == look(bench)
    assert past == (protocol == "hw")


def test_mutant_deletes_past_the_high_watermark_what_nobody_asked_for() -> None:
    rules = with_rule(PROTOCOLS["kip380"], "delete_past_high_watermark=yes")
    assert [(0, 4, "retention-size")] == look(holding(rules, retention_bytes=1, committed=2))


def test_first_epoch_that_remains_begins_where_the_log_does() -> None:
    """Source: KIP-101, Maintaining the LeaderEpochSequenceFile; there its entry is removed, in Kafka it moves."""
    bench = holding(retention_bytes=2 * SIZE)
    before = list(bench.replica.epochs.entries)
    look(bench)
    assert [(before[0].epoch, 3)] == [tuple(entry) for entry in bench.replica.epochs.entries]


def test_nothing_is_looked_at_without_a_limit() -> None:
    bench = holding()
    assert [] == look(bench, 10**15)
    assert ("retention",) not in list(bench.broker.state.timers)


def test_log_without_a_role_is_left_alone() -> None:
    bench = holding(retention_bytes=1)
    bench.command(leader=-1, epoch=9)
    assert [] == look(bench)
    assert TP in bench.broker.state.replicas
