"""A way to play one cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from harness.cell import CellSpec, Played, Stage, play_cell
from harness.cli.judging import cell_of

from checkers import CHECKERS
from checkers.checker import Checker, check, partitions
from harness.environment.real import RealEnvironment
from harness.fault import Fault
from harness.history import read_history
from harness.hosts import HOSTS
from harness.hosts.base import Address
from harness.model import Anomaly, Op
from harness.registry import load
from harness.run.store import SuiteDir, create_suite
from harness.schedule import draw, read_scenario
from harness.target import Target
from harness.variant import Variant
from nemesis import NEMESES
from targets import TARGETS
from workloads import SCENARIOS

PlayOne = Callable[..., Played]
SEED = 11


@pytest.fixture(scope="package")
def suite_dir(tmp_path_factory: pytest.TempPathFactory) -> SuiteDir:
    """The folder in which the runs of these tests are kept."""
    return create_suite(tmp_path_factory.mktemp("results"), "suite")


@pytest.fixture(scope="package")
def play_one(suite_dir: SuiteDir, zookeeper: Address) -> PlayOne:
    """Play one cell on real broker processes."""
    target: Target = load("target", TARGETS, "broker", "TARGET")

    def play(
        scenario: str,
        protocol: str,
        *rules: str,
        name: str = "",
        faults: Mapping[str, Fault] = NEMESES,
        power_tier: str | None = None,
    ) -> Played:
        stage = Stage(
            ground=RealEnvironment(
                "local", make_host=HOSTS["local"], target=target, power_tier=power_tier, zookeeper=zookeeper
            ),
            target=target,
            faults=faults,
        )
        read = read_scenario(SCENARIOS / f"{scenario}.txt")
        spec = CellSpec(
            scenario=read,
            draw=draw(read, SEED),
            variant=Variant(protocol=protocol),
            rules=target.rules(protocol, rules),
        )
        run = suite_dir.create_run(f"{spec.name}{name}")
        return play_cell(stage, spec, run, lambda _: None)

    return play


def ops_of(played: Played) -> list[Op]:
    """The history of a cell that was played."""
    return read_history(played.run.history)


def judged(played: Played, checkers: Mapping[str, Checker] = CHECKERS) -> Cell:
    """Hold a cell against its expectation, with these checkers and without Spark."""
    ops = ops_of(played)
    found: list[Anomaly] = []
    for part in partitions(ops).values():
        found += check(part, checkers, frozenset())
    return cell_of(played, ops, found, "again")


def path_of(played: Played) -> Path:
    """Where a run is kept."""
    return played.run.path
