"""Fixtures and helpers that play one run of a scenario and judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkers import CHECKERS
from checkers.checker import Checker
from checkers.judge import check_in_process, judge
from harness.cluster.fault import Fault
from harness.environment.real import RealEnvironment
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import Op
from harness.run.environment import Environment
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, SuiteDir, create_suite
from harness.scenario.variant import Variant
from harness.target.found import target as target_of
from harness.target.target import Target
from tests.faults import NEMESES
from tests.services import shared
from tests.suite.cells import spec_of

SEED = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A played run and its spec."""

    spec: RunSpec
    run: Run


PlayOne = Callable[..., Done]


@pytest.fixture(scope="package")
def suite_dir(tmp_path_factory: pytest.TempPathFactory) -> SuiteDir:
    """Create the folder for the runs of these tests."""
    return create_suite(tmp_path_factory.mktemp("results"), "suite")


@pytest.fixture(scope="package")
def play_one(suite_dir: SuiteDir, zookeeper: Address) -> PlayOne:
    """Return a function that plays one run on real broker processes."""
    target: Target = target_of("broker")

    def play(
        scenario: str,
        protocol: str,
        *rules: str,
        name: str = "",
        faults: Mapping[str, Fault] = NEMESES,
        power_tier: str | None = None,
    ) -> Done:
        environment = RealEnvironment(
            "local",
            make_host=HOSTS["local"],
            target=target,
            power_tier=power_tier,
            shared=shared(zookeeper),
        )
        spec = spec_of(scenario, Variant(protocol=protocol), target, SEED, changes=rules, host="local")
        return play_in(environment, spec, suite_dir, name=name, faults=faults)

    return play


def play_in(
    environment: Environment,
    spec: RunSpec,
    folder: SuiteDir,
    *,
    name: str = "",
    faults: Mapping[str, Fault] = NEMESES,
) -> Done:
    """Play a run in this environment and keep it in the folder."""
    run = folder.create_run(f"{spec.name}{name}")
    return Done(spec=spec, run=Player(environment=environment, faults=faults).play(spec, run))


def ops_of(played: Done) -> list[Op]:
    """Return the history of a played run."""
    return read_history(played.run.history)


def judged(played: Done, checkers: Mapping[str, Checker] = CHECKERS) -> RunResult:
    """Judge a played run with these checkers, without Spark."""
    ops = ops_of(played)
    return judge(played.spec, ops, anomalies=check_in_process(ops, checkers))


def path_of(played: Done) -> Path:
    """Return the folder of a played run."""
    return played.run.path
