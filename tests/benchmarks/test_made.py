"""Made histories are sound but for what is planted, and the rules find that and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.made.history import Maker, Shape
from benchmarks.made.plants import AT_END, PLANTS, Plant
from benchmarks.made.truth import read_truth, write_truth, wrong
from checkers.judge import check_in_process
from tests.kept import keep
from tests.tables.stored import all_ops

SENDS = 300


def _shape(batch: int, unanswered: float, *plants: Plant) -> Shape:
    return Shape(
        sends=SENDS, partitions=2, batch=batch, unanswered=unanswered, stretch=70, elections=2, plants=plants
    )


@pytest.mark.parametrize("batch", [1, 3, 100])
@pytest.mark.parametrize("unanswered", [0.0, 0.2])
def test_made_history_is_sound(tmp_path: Path, batch: int, unanswered: float) -> None:
    manifest = Maker(_shape(batch, unanswered)).make(tmp_path / "tables")
    ops = all_ops(tmp_path / "tables")
    assert [] == check_in_process(ops)
    assert list(range(manifest.ops)) == [op.index for op in ops]
    assert SENDS * 2 == manifest.rows["produces"]


@pytest.mark.parametrize("name", keep(PLANTS, "lost", "diverged"))
def test_plant_is_found_and_nothing_else(tmp_path: Path, name: str) -> None:
    number = SENDS - 20 if name in AT_END else 57
    maker = Maker(_shape(3, 0.1, Plant(name=name, number=number, partition=1)))
    maker.make(tmp_path / "tables")
    write_truth(tmp_path, maker.truth)
    found = check_in_process(all_ops(tmp_path / "tables"))
    assert PLANTS[name].kinds == {each.kind for each in found}
    assert {1} == {each.partition for each in found}
    assert [] == wrong(read_truth(tmp_path), found, 3)


def test_same_seed_makes_the_same_history(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        Maker(_shape(3, 0.1), seed=5).make(tmp_path / folder)
    one, other = (all_ops(tmp_path / folder) for folder in ("one", "other"))
    assert [op.to_json() for op in one] == [op.to_json() for op in other]
