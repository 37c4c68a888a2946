"""Large runs: what Spark leaves out of a history changes nothing of what the rules find."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from benchmarks.made.history import Maker, Shape
from benchmarks.made.plants import AT_END, PLANTS, Plant
from checkers import CHECKERS
from checkers.judge import check_in_process
from checkers.spark import anywhere, landed
from checkers.spark.runs import check_runs
from checkers.spark.search import Limits
from harness.model import Anomaly, Kind, PartOps
from harness.tables.manifest import FOLDER, Manifest
from tests.checkers.golden import STORIES, ops_of
from tests.checkers.large import Found, check_together
from tests.checkers.plants.histories import HISTORIES
from tests.kept import exhaustive, keep
from tests.tables.stored import all_ops, silent, stored

pytestmark = pytest.mark.spark

# So many buckets that there is a look between the first and the last, and so few that there is none.
LIMITS = Limits(coarse=3, fine=1, few=0)
FEW = Limits(coarse=4)
MADE = 120


def _made(folder: Path, count: int) -> list[tuple[Path, Manifest]]:
    """Make runs of every shape, most with a plant or two, anywhere."""
    rng = random.Random(7)
    names = [*PLANTS]
    made: list[tuple[Path, Manifest]] = []
    for number in range(count):
        sends = rng.choice([50, 120, 300])
        # One place for each, so that no plant takes away what another changes.
        places = rng.sample(range(sends // 10), rng.choice([0, 1, 1, 1, 2, 3]))
        chosen = [(rng.choice(names), 9 * place) for place in sorted(places)]
        plants = tuple(
            Plant(name=name, number=number)
            for place, (name, number) in enumerate(chosen)
            if name not in AT_END or place == len(chosen) - 1
        )
        shape = Shape(
            sends=sends,
            stretch=rng.choice([17, 40, 1000]),
            elections=rng.choice([1, 2, 5]),
            batch=rng.choice([1, 3, 7, 20]),
            unanswered=rng.choice([0, 0.05, 0.3]),
            reads=rng.random() < 0.9,
            plants=plants,
        )
        path = folder / str(number)
        made.append((path, Maker(shape, seed=number).make(path)))
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Manifest]]:
    return _made(tmp_path_factory.mktemp("made"), MADE)


Expected: TypeAlias = Callable[[slice], list[list[Anomaly]]]


@pytest.fixture(scope="module")
def expected(made: list[tuple[Path, Manifest]]) -> Expected:
    """Return what the rules find in some of the made runs, each judged when it is asked for, and once."""

    @cache
    def judged(number: int) -> list[Anomaly]:
        return check_in_process(all_ops(made[number][0]))

    return lambda chosen: [judged(number) for number in range(len(made))[chosen]]


def _assert_same(expected: Sequence[Sequence[Anomaly]], found: Found) -> None:
    unlike = [n for n, (one, other) in enumerate(zip(expected, found.anomalies, strict=True)) if one != other]
    assert [] == [(n, expected[n], found.anomalies[n]) for n in unlike]


@exhaustive
def test_what_is_left_out_changes_nothing_of_what_the_rules_find(
    session: Any, made: list[tuple[Path, Manifest]], expected: Expected, tmp_path: Path
) -> None:
    found, all_of_them = check_together(session, made, tmp_path / "all", LIMITS), expected(slice(None))
    _assert_same(all_of_them, found)
    # Most was left out, and most runs have something to find.
    assert found.rows["produce"] < found.made["produces"] / 3
    assert found.rows["record"] < found.made["records"] / 3
    assert MADE / 2 < sum(map(bool, all_of_them)) < MADE


@pytest.mark.parametrize("every", keep([8, 3], 8))
@exhaustive
def test_order_of_rows_changes_nothing(
    session: Any, made: list[tuple[Path, Manifest]], expected: Expected, tmp_path: Path, every: int
) -> None:
    found = check_together(session, made[::every], tmp_path / "all", FEW, backwards=True)
    _assert_same(expected(slice(None, None, every)), found)


@exhaustive
def test_number_of_shares_that_values_are_looked_for_in_changes_nothing(
    session: Any,
    made: list[tuple[Path, Manifest]],
    expected: Expected,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landed, "_TOGETHER", 100)
    monkeypatch.setattr(anywhere, "_TOGETHER", 500)
    _assert_same(expected(slice(1, None, 6)), check_together(session, made[1::6], tmp_path / "all", FEW))


@pytest.mark.parametrize("every", keep([4, 1], 4))
@exhaustive
def test_goldens_and_plants_of_brokers_that_emit_no_events_are_judged_alike(
    session: Any, tmp_path: Path, every: int
) -> None:
    histories = [silent(ops) for ops in [HISTORIES[name] for name in [*HISTORIES][::every]]]
    paths = [tmp_path / str(number) for number in range(len(histories))]
    runs = [(path, stored(ops, path)) for path, ops in zip(paths, histories, strict=True)]
    found = check_together(session, runs, tmp_path / "all", LIMITS)
    expected = [check_in_process(PartOps(ops)) for ops in histories]
    _assert_same(expected, found)
    assert 300 <= every * sum(map(bool, expected))
    assert 10 <= every * sum(bool(manifest.irregular) for _, manifest in runs)


def test_goldens_of_brokers_that_emit_events_are_judged_whole_from_their_tables(
    session: Any, tmp_path: Path
) -> None:
    runs = [(tmp_path / name, stored(ops_of(name), tmp_path / name)) for name in STORIES]
    found = check_together(session, runs, tmp_path / "all", LIMITS)
    _assert_same([check_in_process(PartOps(ops_of(name))) for name in STORIES], found)
    assert (found.made["produces"], 0) == (found.rows["produce"], found.rows.get("span", 0))


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_plant_is_found_and_nothing_else(session: Any, tmp_path: Path, partitions: int) -> None:
    names = [*PLANTS]
    sends = 30_000
    plants = tuple(
        Plant(name=name, number=sends - 50 if name in AT_END else 1_500 * place, partition=place % partitions)
        for place, name in enumerate(names, start=1)
    )
    sound, planted = tmp_path / "sound", tmp_path / "planted"
    Maker(Shape(sends=sends, partitions=partitions, stretch=7_000)).make(sound / FOLDER)
    Maker(Shape(sends=sends, partitions=partitions, stretch=7_000, plants=plants)).make(planted / FOLDER)
    found = check_runs(session, [sound, planted], CHECKERS)
    assert [] == found["sound"]
    for plant in plants:
        kinds = {each.kind for each in found["planted"] if each.partition == plant.partition}
        assert PLANTS[plant.name].kinds <= kinds, plant
        planted_here = {
            kind for each in plants if each.partition == plant.partition for kind in PLANTS[each.name].kinds
        }
        assert kinds <= planted_here


@exhaustive
def test_more_doubts_than_can_be_looked_at_make_a_run_unknown_at_best(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Maker(Shape(sends=300, stretch=100)).make(tmp_path / "run" / FOLDER)
    found = check_runs(session, [tmp_path / "run"], CHECKERS, limits=Limits(offsets=1))["run"]
    assert {Kind.UNCHECKED} == {each.kind for each in found}
    assert "evidence differs at" in found[0].sentence
