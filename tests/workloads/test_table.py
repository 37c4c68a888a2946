"""The scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.file import draw
from harness.suite.scenario_files import read_scenario
from workloads import SCENARIOS


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_scenario_reads_under_its_files_name_and_draws_alike_for_one_seed(path: Path) -> None:
    scenario = read_scenario(path)
    assert path.stem == scenario.name
    assert set(scenario.replicas) <= set(scenario.nodes)
    assert draw(scenario, 3) == draw(scenario, 3)
    assert set(scenario.nodes) == set(draw(scenario, 3).ids)
