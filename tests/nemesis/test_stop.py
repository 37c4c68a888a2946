"""A clean shutdown flushes everything, ends the session at once, and is known at the next start, once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.cluster.cluster import Cluster
from harness.events import Recovered
from harness.model import Op, Verdict, events_of
from tests.nemesis.conftest import await_whole, heal, inject, produce, roles
from tests.nemesis.simulated import played, seen


def recoveries(ops: Sequence[Op], node: str) -> list[tuple[bool, int, int]]:
    """Return (clean, log end, high watermark) of each start of a node that found a log."""
    found = [event for op, event in events_of(ops, Recovered) if op.process == node]
    return [(event.clean, event.log_end_offset, event.high_watermark) for event in found]


def test_next_start_is_clean_with_all_records_and_the_last_high_watermark() -> None:
    steps = "produce m1 acks=all\nproduce m2 acks=all\nstop A\nawait leader = B\nrestart A\n"
    result, ops = played("stop", steps)
    assert "ended cleanly at" in seen(ops, "stop")
    assert [(True, 3, 3)] == recoveries(ops, "A")
    assert Verdict.VALID is result.verdict, result.anomalies


@pytest.mark.parametrize("seed", [1, 53])
def test_election_whose_report_is_under_way_when_the_run_ends_is_no_contradiction(seed: int) -> None:
    steps = "produce m1 acks=all\nproduce m2 acks=all\nstop B\nrestart B\n"
    result, _ = played("stop", steps, settings="flush_messages=1", seed=seed)
    assert Verdict.VALID is result.verdict, result.anomalies


def test_marker_counts_once() -> None:
    """Source: KAFKA-10471, a stale clean-shutdown marker."""
    steps = "produce m1 acks=all\nstop B\nrestart B\nkill B\nexpire B\nrestart B\n"
    result, ops = played("stop", steps)
    assert [True, False] == [clean for clean, _, _ in recoveries(ops, "B")]
    assert Verdict.VALID is result.verdict, result.anomalies


def test_what_was_there_at_the_shutdown_survives_the_power() -> None:
    steps = "produce m1 acks=all\nstop B\nrestart B\nawait isr = A B\npower-loss B\nexpire B\nrestart B\n"
    _, ops = played("stop", steps)
    assert [(True, 2), (False, 2)] == [(clean, end) for clean, end, _ in recoveries(ops, "B")]


@pytest.mark.slow
def test_real_process_ends_cleanly_and_comes_back(cluster: Cluster) -> None:
    _, follower = roles(cluster)
    end = produce(cluster, 2)
    assert "ended by SIGTERM with" in inject("stop", cluster, follower)
    assert (False, {follower}) == (cluster.host.alive(follower), cluster.down)
    assert (end, 0) == (cluster.log_end(follower), cluster.metadata.incarnation(follower))
    heal("stop", cluster, follower)
    await_whole(cluster)
