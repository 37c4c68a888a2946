"""Each entry of the table makes an environment, which rejects what it cannot run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.ability import Ability
from harness.environment import ENVIRONMENTS
from harness.environment.needs import needs_of
from harness.environment.real import RealEnvironment
from harness.events import Done
from harness.history.file import History
from harness.hosts import HOSTS
from harness.model import HistoryError, OpType, UsageError
from harness.registry import load
from harness.run.environment import MakeEnvironment
from harness.run.spec import RunSpec
from harness.scenario.file import Step
from targets.broker_target.target import TARGET
from tests.scenario.words import step
from tests.specs import cluster_spec


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_line_makes_an_environment_of_that_name(name: str) -> None:
    make: MakeEnvironment = load("host", ENVIRONMENTS, name, "make_environment")
    environment = make(name, target=TARGET, power_tier=None, ports=None)
    assert (name, True) == (environment.name, environment.jobs >= 1)
    environment.close()


def test_every_host_is_an_environment() -> None:
    assert set(HOSTS) < set(ENVIRONMENTS)


def test_cluster_before_the_environment_is_open_is_refused_and_its_history_closed(tmp_path: Path) -> None:
    environment = RealEnvironment("local", make_host=HOSTS["local"], target=TARGET)
    history = History(tmp_path / "history.jsonl")
    with pytest.raises(UsageError, match="environment local: no services; expected open before open_cluster"):
        environment.open_cluster(cluster_spec(TARGET, "hw", {}, []), tmp_path, history)
    with pytest.raises(HistoryError):
        history.record("runner", OpType.INFO, Done())


def test_run_gets_servers_and_links_of_its_own_only_for_faults_that_need_them() -> None:
    assert frozenset() == needs_of(spec_of("kill A", "partition-isolate A"), TARGET)
    assert {Ability.SERVICE_ENSEMBLE} == needs_of(spec_of("kill A", "zookeeper-leader-lost A"), TARGET)
    assert {Ability.OWN_SERVICES} == needs_of(spec_of("zookeeper-outage A"), TARGET)
    assert {Ability.CLIENT_LINKS} == needs_of(spec_of("partition-clients A"), TARGET)


def spec_of(*steps: str) -> RunSpec:
    """Return the spec of a run with these steps."""
    spec = cluster_spec(TARGET, "hw", {}, [])
    acts = tuple(Step(line=line, act=step(text)) for line, text in enumerate(steps))
    return replace(spec, scenario=replace(spec.scenario, steps=acts))
