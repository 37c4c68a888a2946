"""An engine that stops in mid-run fails every call with one sentence; the next start removes what it left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import limits
from harness.cleanup.ledger import reap, runs_dir
from harness.cleanup.process import until
from harness.hosts import docker
from harness.hosts.docker import DockerHost
from harness.launch import Launch
from harness.model import FencepostError, PreconditionError
from tests.stub_engine import StubEngine, serving

LAUNCH = Launch(argv=("serve",))


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a host find both images, of which the stub has none."""
    found = SimpleNamespace(broker="broker", java="java")
    monkeypatch.setattr(docker.image_build, "ensure", lambda _client: found)


def is_lost(host: DockerHost) -> bool:
    try:
        host.require_all()
    except PreconditionError:
        return True
    return False


@contextmanager
def at_work(
    engine: StubEngine, at: Path, host: DockerHost, monkeypatch: pytest.MonkeyPatch, *, disk: bool
) -> Iterator[str]:
    """Have the host run a node A on the engine, which goes away at the end; yield its address."""
    with serving(engine, at) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        host.open()
        host.add_node("A", disk=disk)
        host.start("A", LAUNCH)
        yield address


@pytest.mark.usefixtures("images")
def test_every_call_says_which_engine_is_gone_and_the_next_start_removes_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, at, host = StubEngine(), tmp_path / "engine.sock", DockerHost(tmp_path / "run", power_tier="watermark")
    with at_work(engine, at, host, monkeypatch, disk=True) as address:
        host.require_all()
        assert (True, 1, 1) == (host.alive("A"), len(engine.containers), len(engine.networks))
    assert until(lambda: is_lost(host), limits.PROCESS_END_S_MAX)
    lost = f"engine {address}: lost: the connection has ended; expected it until the end of the run"
    calls: dict[str, list[Callable[[], object]]] = {
        "wait": [host.require_all],
        "start A": [lambda: host.start("A", LAUNCH)],
        "look at A": [
            *(lambda act=act: act("A") for act in (host.alive, host.paused, host.kill, host.stop, host.pause)),
            *(lambda act=act: act("A") for act in (host.resume, host.ask_clocks, host.power_loss)),
        ],
    }
    for what, acts in calls.items():
        for act in acts:
            with pytest.raises(PreconditionError) as raised:
                act()
            assert f"{what}: {lost}" == str(raised.value)
    with pytest.raises(
        FencepostError, match=rf"^{lost}; then host in .* next run tries again: .* answers at {address} \("
    ):
        host.close()
    assert (1, 1) == (len(engine.containers), len(engine.networks))
    assert 2 == len(reap().left)
    with serving(engine, at):
        again = DockerHost(tmp_path / "next", power_tier="watermark")
        monkeypatch.setattr(limits, "REAP_AGAIN_S_MIN", 0.0)  # this process has just tried it
        again.open()
        assert () == again.reaped.left
        assert 2 == len(again.reaped.undone)
        again.close()
    assert ({}, {}) == (engine.containers, engine.networks)
    assert [] == [path for path in runs_dir().iterdir() if path.is_dir()]


@pytest.mark.usefixtures("images")
def test_engine_that_is_back_at_once_is_lost_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, at, host = StubEngine(), tmp_path / "engine.sock", DockerHost(tmp_path / "run", power_tier="watermark")
    with at_work(engine, at, host, monkeypatch, disk=False):
        pass
    with serving(engine, at):
        assert until(lambda: is_lost(host), limits.PROCESS_END_S_MAX)
        with pytest.raises(PreconditionError, match=r"look at A: engine unix://.*: lost: the connection"):
            host.alive("A")
        with pytest.raises(FencepostError, match=r"^engine unix://.*: lost: the connection"):
            host.close()
        assert ({}, {}) == (engine.containers, engine.networks)
        host.close()


@pytest.mark.usefixtures("images")
def test_container_that_ends_while_its_engine_takes_no_connection_has_not_ended_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that stops closes its socket, then ends the containers, and answers old connections meanwhile."""
    engine, at, host = StubEngine(), tmp_path / "engine.sock", DockerHost(tmp_path / "run", power_tier="watermark")
    with at_work(engine, at, host, monkeypatch, disk=False) as address:
        engine.running.clear()
        assert False is host.alive("A")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/closed.sock")
        with pytest.raises(PreconditionError, match=r"look at A: .*closed.sock does not answer: .*Errno 2"):
            host.alive("A")
        monkeypatch.setenv("DOCKER_HOST", address)
        host.close()
