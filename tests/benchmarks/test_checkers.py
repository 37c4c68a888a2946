"""The benchmark of the checkers plants what it says, and notices what is missing and what is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.checkers import Job, _wrong
from benchmarks.made.plants import PLANTS
from harness.model import Anomaly, Kind

JOB = Job(records=60_000, partitions=2, batch=3, unanswered=0.01, everywhere=False)


def _found(job: Job) -> list[Anomaly]:
    return [
        Anomaly(kind=kind, topic="made", partition=plant.partition, ranges=((plant.number, plant.number + 1),))
        for plant in job.plants
        for kind in PLANTS[plant.name].kinds
    ]


def test_job_plants_every_sort_once_and_each_within_its_partition() -> None:
    assert [*PLANTS] == [plant.name for plant in JOB.plants]
    assert {0, 1} == {plant.partition for plant in JOB.plants}
    assert all(0 < plant.number < JOB.sends for plant in JOB.plants)
    assert 10_000 == JOB.sends


def test_job_plants_a_divergence_in_each_bucket() -> None:
    plants = replace(JOB, everywhere=True).plants
    assert {"diverged"} == {plant.name for plant in plants}
    assert [(part, bucket) for part in (0, 1) for bucket in (0, 1, 2)] == [
        (plant.partition, plant.number // 4_096) for plant in plants
    ]


@pytest.mark.parametrize("everywhere", [False, True])
def test_exactly_what_was_planted_is_right(everywhere: bool) -> None:
    job = replace(JOB, everywhere=everywhere)
    assert [] == _wrong(job, _found(job))


def test_what_is_missing_and_what_is_too_much_is_wrong() -> None:
    found = [each for each in _found(JOB) if each.kind is not Kind.STUCK]
    found.append(Anomaly(kind=Kind.EXITED, topic="made", partition=1))
    missing, more = _wrong(JOB, found)
    assert "stuck of partition" in missing
    assert "was not found" in missing
    assert "exited of partition 1 was not planted" == more


def test_one_divergence_of_many_that_is_not_found_is_wrong() -> None:
    job = replace(JOB, everywhere=True)
    found = [each for each in _found(job) if each.kind is not Kind.DIVERGED]
    found += [each for each in _found(job) if each.kind is Kind.DIVERGED][1:]
    assert ["5 divergences; expected 6"] == _wrong(job, found)
