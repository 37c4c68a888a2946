"""The benchmark of the checkers plants what it says, and notices what is missing and what is too much."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.made.jobs import Job
from benchmarks.made.plants import PLANTS, Plant
from benchmarks.made.truth import Planted, read_truth, write_truth, wrong
from harness.model import Anomaly, Kind

JOB = Job(records=60_000, partitions=2)
TRUTH = [Planted(name=plant.name, partition=plant.partition, offset=plant.number) for plant in JOB.plants]


def _found(truth: list[Planted]) -> list[Anomaly]:
    return [
        Anomaly(
            kind=kind,
            topic="made",
            partition=plant.partition,
            ranges=((plant.offset, plant.offset + 1),) if plant.offset is not None else (),
        )
        for plant in truth
        for kind in plant.kinds
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


def test_hot_partition_has_most_records_and_plants_lie_within_each_partition() -> None:
    job = replace(JOB, partitions=5, hot=True)
    assert [16_000, 1_000, 1_000, 1_000, 1_000] == [job.shape.sends_of(part) for part in range(5)]
    assert all(0 < plant.number < job.shape.sends_of(plant.partition) for plant in job.plants)


def test_exactly_what_was_planted_is_right() -> None:
    assert [] == wrong(TRUTH, _found(TRUTH), JOB.batch)


@pytest.mark.parametrize("plant", TRUTH, ids=lambda plant: plant.name)
def test_each_plant_that_is_not_found_is_wrong_though_others_are_of_its_kind(plant: Planted) -> None:
    found = _found([each for each in TRUTH if each != plant])
    missing = wrong(TRUTH, found, JOB.batch)
    assert len(plant.kinds) == len(missing)
    assert all(f"was not found at offset {plant.offset} ({plant.name})" in line for line in missing)


def test_what_is_too_much_is_wrong_at_another_offset_or_of_another_kind() -> None:
    more = [
        Anomaly(kind=Kind.CHECKPOINT, topic="made", partition=1, sentence="A"),
        Anomaly(kind=Kind.HOLE, topic="made", partition=TRUTH[3].partition, ranges=((1, 2),), sentence="B"),
    ]
    assert "hole" == TRUTH[3].name
    lines = wrong(TRUTH, [*_found(TRUTH), *more], JOB.batch)
    assert ["hole of partition 0 was not planted: B"] == [line for line in lines if line.endswith("B")]


def test_plant_that_found_nothing_to_change_is_wrong() -> None:
    assert wrong([replace(TRUTH[0], offset=None)], [], JOB.batch)


def test_truth_is_kept_beside_the_tables(tmp_path: Path) -> None:
    write_truth(tmp_path, [(Plant(name="lost", number=7, partition=1), 5), (Plant(name="hole", number=9), None)])
    expected = [Planted(name="lost", partition=1, offset=5), Planted(name="hole", partition=0, offset=None)]
    assert expected == read_truth(tmp_path)
