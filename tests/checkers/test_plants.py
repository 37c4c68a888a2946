"""Every golden history of tests/checkers/plants: the rules find what is planted in a run, and nothing else."""

from __future__ import annotations

import pytest

from checkers.judge import check_in_process
from tests.checkers.plants.table import PLANTS


@pytest.mark.parametrize("name", PLANTS)
def test_plant_is_found_and_nothing_else(name: str) -> None:
    plant = PLANTS[name]
    found = check_in_process(plant.ops)
    assert plant.kinds == {anomaly.kind for anomaly in found}, [anomaly.sentence for anomaly in found]


@pytest.mark.parametrize("name", PLANTS)
def test_proof_of_a_plant_names_ops_of_its_history(name: str) -> None:
    ops = PLANTS[name].ops
    for anomaly in check_in_process(ops):
        assert {*anomaly.proof} <= {op.index for op in ops}
        assert anomaly.sentence.endswith(".")
