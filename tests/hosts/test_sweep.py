"""A host that opens removes containers of dead runs, and nothing of runs that live, end or begin meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup.engine import connect
from harness.cleanup.ledger import runs_dir
from harness.hosts.docker import HOME_LABEL, LABEL, DockerHost, _home
from tests.stub_engine import StubEngine, serving


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubEngine]:
    engine = StubEngine()
    with serving(engine, tmp_path / "engine.sock") as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        yield engine


@pytest.fixture
def host(engine: StubEngine, tmp_path: Path) -> Iterator[DockerHost]:
    """A host that is connected, and not open."""
    host = DockerHost(tmp_path / "run")
    host._client = connect()
    yield host
    host.close()


def of_run(token: str) -> dict[str, str]:
    return {LABEL: token, HOME_LABEL: _home()}


def test_sweep_removes_what_dead_runs_left_though_another_run_removes_its_own(
    engine: StubEngine, host: DockerHost
) -> None:
    (runs_dir() / "living").mkdir()
    engine.containers = {
        "1": ("ends-now", of_run("ending")),
        "2": ("dead", of_run("dead")),
        "3": ("alive", of_run("living")),
    }
    engine.networks = {"4": ("dead", of_run("dead")), "5": ("alive", of_run("living"))}
    engine.vanished = {"1"}
    host._sweep()
    assert ["2", "4"] == engine.removed


def test_sweep_leaves_a_run_alone_that_begins_while_containers_are_listed(
    engine: StubEngine, host: DockerHost
) -> None:
    def begin() -> None:
        (runs_dir() / "new").mkdir()
        engine.containers["1"] = ("begun", of_run("new"))
        engine.networks["2"] = ("begun", of_run("new"))

    engine.on_list = begin
    runs_dir()
    host._sweep()
    assert [] == engine.removed
