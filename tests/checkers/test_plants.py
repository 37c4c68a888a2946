"""Golden histories of tests/checkers/plants: the rules find what is planted in a real run, and nothing else."""

from __future__ import annotations

import pytest

from harness.model import VERDICT_OF, Kind, Verdict
from tests.checkers.plants.classes import CLASSES
from tests.checkers.plants.histories import HISTORIES, found_in
from tests.checkers.plants.table import PLANTS

_PLANTS_MIN = 3


@pytest.mark.parametrize("name", PLANTS)
def test_plant_is_found_and_nothing_else_with_a_proof_that_names_ops_of_its_history(name: str) -> None:
    found = found_in(name)
    assert PLANTS[name].kinds == {anomaly.kind for anomaly in found}, [anomaly.sentence for anomaly in found]
    indexes = {op.index for op in HISTORIES[name]}
    for anomaly in found:
        assert {*anomaly.proof} <= indexes
        assert anomaly.sentence.endswith(".")


@pytest.mark.parametrize("name", CLASSES)
def test_class_has_three_plants_each_with_a_lawful_twin(name: str) -> None:
    pairs = CLASSES[name]
    assert len({planted for planted, _ in pairs}) == len(pairs) >= _PLANTS_MIN
    for planted, lawful in pairs:
        plant, twin = PLANTS[planted], PLANTS[lawful]
        assert plant.run == twin.run
        assert _violations(plant.kinds), planted
        assert not _violations(twin.kinds), lawful


def _violations(kinds: frozenset[Kind]) -> set[Kind]:
    """Return the kinds that make a run invalid or unknown: a hang, or a permitted loss, is no violation."""
    return {kind for kind in kinds if VERDICT_OF[kind] in (Verdict.INVALID, Verdict.UNKNOWN)}
