"""
What an engine that really stops in mid-run leaves is removed at the next start, whatever became of its containers.

The engine is the tests' own (tests/engine_box.py): that of the machine is not touched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.model import EXIT_CODES
from tests.cleanup.leftovers import Leftovers
from tests.engine_box import EngineBox, engine_box
from tests.hosts.test_engine_gone_really import PLAY, PROTOCOLS, ROOT, at_work
from tests.kept import exhaustive
from tests.needs import needs

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.root, exhaustive, needs("engine-box")]

CELL = ("--protocol", "kip380", "--seed", "1")


@pytest.fixture(scope="module")
def loaded() -> Iterator[EngineBox]:
    """Return a box whose engine has the images, and does not run."""
    with engine_box() as made:
        with made.running():
            made.load_images()
        yield made


def play(box: EngineBox, results: Path, *words: str) -> subprocess.Popen[str]:
    """Start a suite in the box."""
    return subprocess.Popen(
        box.inside(*PLAY, *words, "--results", str(results)),
        env={**os.environ, "DOCKER_HOST": box.address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def test_looks_into_the_box_find_what_is_there(loaded: EngineBox, tmp_path: Path) -> None:
    box = loaded
    (tmp_path / "mount").mkdir()
    with box.running(), box.client() as client:
        assert ({}, [], [], []) == (box.states(), box.networks(), box.mounts(tmp_path), box.processes())
        network = client.networks.create("planted", internal=True)
        container = client.containers.create(
            client.images.list()[0].id, entrypoint=["sleep", "7777"], name="planted"
        )
        container.start()
        subprocess.run(box.inside("mount", "-t", "tmpfs", "none", f"{tmp_path}/mount"), check=True)
        assert ({"planted": "running"}, ["planted"]) == (box.states(), box.networks())
        assert [f"none {tmp_path}/mount"] == [" ".join(line.split()[:2]) for line in box.mounts(tmp_path)]
        assert "sleep 7777" in box.processes()
        container.remove(force=True)
        network.remove()
        subprocess.run(box.inside("umount", f"{tmp_path}/mount"), check=True)
        assert ({}, [], [], []) == (box.states(), box.networks(), box.mounts(tmp_path), box.processes())


# How the engine stops, and whether containers run on until it is back: others are there, and have exited.
@pytest.mark.parametrize(
    ("number", "options", "survive"),
    [
        pytest.param(signal.SIGTERM, (), False, id="stopped"),
        pytest.param(signal.SIGKILL, (), False, id="killed"),
        pytest.param(signal.SIGTERM, ("--live-restore",), True, id="stopped-live-restore"),
        pytest.param(signal.SIGKILL, ("--live-restore",), True, id="killed-live-restore"),
    ],
)
def test_suite_whose_engine_stops_is_unknown_and_the_next_start_removes_what_is_left(
    loaded: EngineBox, tmp_path: Path, number: signal.Signals, options: tuple[str, ...], survive: bool
) -> None:
    box, results = loaded, tmp_path / "results"
    protocols = [word for name in PROTOCOLS for word in ("--protocol", name)]
    with box.running(*options), play(box, results, *protocols, "--jobs", "2", "--seed", "1") as suite:
        assert until(lambda: bool(at_work(results)) or suite.poll() is not None, 3 * limits.CONDITION_WAIT_S_MAX)
        working = at_work(results)
        box.stop(number)
        said, errors = suite.communicate()
    assert (EXIT_CODES["unknown"], "") == (suite.returncode, errors), said
    [table] = results.glob("2*/suite.json")
    cells = json.loads(table.read_text("utf-8"))["cells"]
    assert {"unknown"} == {cell["status"] for cell in cells}
    reasons = {f"{cell['scenario']}-{cell['protocol']}": cell["reason"] for cell in cells}
    assert (len(PROTOCOLS), True) == (len(reasons), bool(working))
    assert all(box.address in reason for reason in reasons.values()), reasons
    unbegun = {name for name, reason in reasons.items() if reason.startswith("Docker: no engine answers at ")}
    assert unbegun and not unbegun & set(working), reasons
    left = Leftovers(folder=tmp_path)
    left.remember()
    assert "ledger" in {text.split()[0] for text in left.found()}

    with box.running(*options):
        assert (survive, True) == ("running" in box.states().values(), bool(box.networks()))
        with play(box, tmp_path / "next", *CELL) as again:
            said, errors = again.communicate()
        assert (EXIT_CODES["valid"], "") == (again.returncode, errors), said
        assert ({}, [], [], []) == (box.states(), box.networks(), box.mounts(tmp_path), box.processes())
    assert [] == left.found()
