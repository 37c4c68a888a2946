"""The tables of clients and scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.registry import load
from harness.scenario.file import draw
from harness.suite.scenario_files import read_scenario
from workloads import CLIENTS, SCENARIOS


def test_clients_are_known_by_the_library_they_stand_on() -> None:
    for name, module in CLIENTS.items():
        made = load("client", CLIENTS, name, "CLIENT")
        assert f"targets.kafka_family.clients.{name}" == module == made.__module__


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_scenario_reads_under_its_files_name_and_draws_alike_for_one_seed(path: Path) -> None:
    scenario = read_scenario(path)
    assert path.stem == scenario.name
    assert set(scenario.replicas) <= set(scenario.nodes)
    assert draw(scenario, 3) == draw(scenario, 3)
    assert set(scenario.nodes) == set(draw(scenario, 3).ids)
