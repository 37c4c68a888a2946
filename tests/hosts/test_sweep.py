"""A host that opens removes containers of dead runs, and nothing of runs that live, end or begin meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from requests.exceptions import ConnectionError

from harness.cleanup.engine import connect
from harness.cleanup.ledger import reap, runs_dir
from harness.hosts.docker import HOME_LABEL, LABEL, DockerHost, _home
from harness.model import FencepostError
from harness.run.failure import reason_of
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


def test_engine_that_stops_while_a_host_opens_is_said_before_what_could_not_be_taken_down(
    engine: StubEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_client: object) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
        raise ConnectionError("Connection aborted.")

    monkeypatch.setattr("harness.hosts.docker.image_build.ensure", lambda _client: None)
    monkeypatch.setattr(DockerHost, "_make_network", stop)
    host = DockerHost(tmp_path / "run", power_tier="watermark")

    def open_or_close() -> None:
        with ExitStack() as made:
            made.callback(host.close)
            host.open()

    with pytest.raises(FencepostError) as raised:
        open_or_close()
    reason = reason_of(raised.value)
    assert "none.sock does not answer: Connection aborted.; expected an engine that answers; then host" in reason
    assert "not all is undone, the next run tries again: networks fencepost-" in reason
    assert reason.endswith("none.sock ([Errno 2] No such file or directory); expected an engine that removes it")
    assert ["networks"] == [left.split()[0] for left in reap().left]
