"""What a killed harness left is removed: by name and label, though other runs remove theirs meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup.process import identity_of
from harness.cleanup.undo import UNDO
from tests.stub_engine import StubEngine, serving

OURS = {"fencepost.run": "abc"}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubEngine]:
    engine = StubEngine()
    with serving(engine, tmp_path / "engine.sock") as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        yield engine


def undo(kind: str, name: str) -> str:
    return UNDO[kind]({"name": name, "label": "fencepost.run=abc"})


def test_container_is_removed_though_another_one_was_removed_while_they_were_listed(engine: StubEngine) -> None:
    engine.containers = {"1": ("other", OURS), "2": ("ours-a", OURS)}
    engine.vanished = {"1"}
    assert "" == undo("container", "ours-a")
    assert ["2"] == engine.removed


def test_container_that_another_process_is_removing_counts_as_removed_once_it_is_gone(engine: StubEngine) -> None:
    engine.containers = {"1": ("ours-a", OURS)}
    engine.removing = {"1"}
    assert "" == undo("container", "ours-a")
    assert {"1"} == engine.vanished


def test_all_networks_of_one_name_are_removed_though_one_is_gone_already(engine: StubEngine) -> None:
    """A harness killed while it made its network may leave two of one name."""
    engine.networks = {"1": ("ours", OURS), "2": ("ours", OURS), "3": ("ours", {}), "4": ("other", OURS)}
    engine.vanished = {"1"}
    assert "" == undo("network", "ours")
    assert ["2"] == engine.removed


def test_engine_that_does_not_answer_leaves_the_container_for_later_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert "containers ours-a: Docker: no engine answers" in undo("container", "ours-a")


@pytest.mark.slow
def test_process_of_a_killed_harness_ends_and_so_does_what_the_library_of_its_clocks_left() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        left = [Path(f"/dev/shm/faketime_shm_{child.pid}"), Path(f"/dev/shm/sem.faketime_sem_{child.pid}")]
        for path in left:
            path.touch()
        found = identity_of(child.pid)
        assert found is not None
        fields = {
            "token": "none",
            "since": found.start,
            "boot": found.boot,
            "pid": found.pid,
            "start": found.start,
        }
        assert "" == UNDO["process"](fields)
        assert -9 == child.wait()
    assert [False, False] == [path.exists() for path in left]
