"""The job that a load process receives, and the measurement that it returns."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.job import Job, Measured, Work
from tests.benchmarks.samples import measured

JOB = Job(
    work=Work.CONSUME,
    bootstrap="a:1,b:2",
    topic="t",
    partitions=3,
    acks=-1,
    record_bytes=100,
    warm_s=0.5,
    window_s=8.0,
    pids=(7, 8),
)


def test_job_is_read_as_it_was_written() -> None:
    assert JOB == Job.from_json(JOB.to_json())
    assert "\n" not in JOB.to_json()


def test_measurement_is_read_as_it_was_written() -> None:
    for one in (measured(5), replace(measured(5), p50_ms=None, p99_ms=None)):
        assert one == Measured.from_json(one.to_json())


def test_throughput_and_cpu_are_per_second_of_the_window_and_per_million_bytes() -> None:
    one = measured(3000, seconds=1.5, cpu_s=0.6, size=100)
    assert 0.3 == one.megabytes
    assert 0.3 / 1.5 == one.mb_per_s
    assert 2000 == one.records_per_s
    assert 600 / 0.3 == one.broker_cpu_ms_per_mb
    assert 500 / 0.3 == one.client_cpu_ms_per_mb


def test_cpu_for_each_megabyte_is_unknown_where_nothing_came_through() -> None:
    assert (0.0, None, None) == (
        measured(0).mb_per_s,
        measured(0).broker_cpu_ms_per_mb,
        measured(0).client_cpu_ms_per_mb,
    )
