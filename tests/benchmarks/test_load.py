"""The measured window of a load process: where it starts and ends, and which records it counts."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from benchmarks import load
from benchmarks.job import Work
from tests.benchmarks.test_job import JOB


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.now / 10


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(load, "time", made)
    return made


def test_window_counts_what_comes_after_its_beginning_and_before_its_end(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = iter([1.0, 3.0, 3.75])
    monkeypatch.setattr(load, "cpu_seconds", lambda pids: next(used) if pids == (7, 8) else None)
    window = load.Window(replace(JOB, warm_s=2.0, window_s=5.0))
    for now, records, latency in (
        (100.0, 0, 950.0),
        (101.0, 10, 900.0),
        (102.5, 15, 800.0),
        (104.0, 40, 30.0),
        (107.0, 70, 20.0),
    ):
        clock.now = now
        assert window.goes_on(records)
        window.take(latency)
    clock.now = 108.0
    assert not window.goes_on(95)
    window.take(700.0)
    found = window.measured(failed=2)
    assert (80, 5.5, 0.75, 2) == (found.records, found.seconds, found.broker_cpu_s, found.failed)
    assert pytest.approx(0.55) == found.client_cpu_s
    # Latencies from before the window are discarded; latencies from after its end are not recorded.
    assert (30.0, 800.0) == (found.p50_ms, found.p99_ms)


def test_window_opens_on_the_first_record_and_closes_on_another(clock: Clock) -> None:
    window = load.Window(replace(JOB, warm_s=0.0, window_s=1.0, pids=(os.getpid(),)))
    for now, records in ((100.0, 0), (107.0, 0), (108.0, 3), (109.5, 3)):
        clock.now = now
        assert window.goes_on(records)
    clock.now = 110.0
    assert not window.goes_on(4)
    assert (1, 2.0) == (window.measured(0).records, window.measured(0).seconds)


def test_window_of_a_client_that_does_nothing_ends_all_the_same(clock: Clock) -> None:
    window = load.Window(replace(JOB, warm_s=0.0, window_s=1.0, pids=(os.getpid(),)))
    assert window.goes_on(0)
    clock.now += load.IDLE_S_MAX
    assert window.goes_on(0)  # opens
    clock.now += 1 + load.IDLE_S_MAX
    assert not window.goes_on(0)
    assert (0, None, None) == (window.measured(0).records, window.measured(0).p50_ms, window.measured(0).p99_ms)


def test_every_work_has_its_load() -> None:
    assert set(Work) == load.WORKS.keys()
