"""The table of grounds: each line makes one, and what it cannot carry is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from harness.environment import ENVIRONMENTS
from harness.environment.real import RealEnvironment
from harness.history import History
from harness.hosts import HOSTS
from harness.model import HistoryError, OpType, Source, UsageError
from harness.registry import load
from harness.run.environment import MakeEnvironment, Plan
from targets.broker.target import TARGET


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_line_makes_a_ground_of_that_name(name: str) -> None:
    make: MakeEnvironment = load("host", ENVIRONMENTS, name, "make_environment")
    ground = make(name, target=TARGET, power_tier=None, ports=None)
    assert (name, True) == (ground.name, ground.jobs >= 1)
    ground.close()


def test_every_host_is_a_ground() -> None:
    assert set(HOSTS) < set(ENVIRONMENTS)


def test_cluster_before_the_ground_is_open_is_refused_and_its_history_closed(tmp_path: Path) -> None:
    ground = RealEnvironment("local", make_host=HOSTS["local"], target=TARGET)
    history = History(tmp_path / "history.jsonl")
    plan = Plan(name="x", run_dir=tmp_path, protocol="hw", rules={}, ids={}, replicas=(), seed=1)
    with pytest.raises(UsageError, match="ground local: no ZooKeeper; expected open before open_cluster"):
        ground.open_cluster(plan, history)
    with pytest.raises(HistoryError):
        history.record(Source.RUNNER, "runner", OpType.INFO, "late")


def test_unknown_client_is_refused(tmp_path: Path) -> None:
    ground = RealEnvironment("local", make_host=HOSTS["local"], target=TARGET, client="telnet")
    with pytest.raises(UsageError, match="unknown client 'telnet': expected one of"):
        ground.make_client(cast(Any, None))
