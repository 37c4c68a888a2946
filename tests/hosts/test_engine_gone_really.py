"""A suite whose Docker engine goes away in mid-run is unknown; the next start removes what it left there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harness import limits
from harness.cleanup import engine, mounts
from harness.cleanup.ledger import reap, runs_dir
from harness.cleanup.process import until
from harness.hosts.docker import LABEL, DockerHost
from harness.model import EXIT_CODES
from tests.engine_proxy import between
from tests.kept import exhaustive

pytestmark = [pytest.mark.docker, pytest.mark.slow, exhaustive]

ROOT = Path(__file__).resolve().parents[2]
PROTOCOLS = ("hw", "kip101", "kip279", "kip380")
PLAY = (sys.executable, "-m", "harness.cli.main", "play", "--host", "docker", "--scenario", "kip101-1")


def of_runs(tokens: Iterable[str]) -> list[str]:
    """Return the names of what the engine has of these runs."""
    client = engine.connect()
    try:
        labels = [f"{LABEL}={token}" for token in tokens]
        found = [each.name for label in labels for each in engine.containers(client, label)]
        return found + [each.name for label in labels for each in engine.networks(client, label)]
    finally:
        client.close()


def at_work(results: Path) -> list[str]:
    """Return the names of runs whose steps have begun to produce, and are not at their end."""
    begun = [(path.parent.name, path.read_text("utf-8")) for path in results.glob("2*/*/history.jsonl")]
    return [name for name, text in begun if '"text":"produce m2 ' in text and '"healed"' not in text]


@pytest.fixture(autouse=True)
def nothing_left(state_folder: Path) -> Iterator[None]:
    """Undo after a test that failed what its suite left; the engine answers again."""
    yield
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state_folder))
        reap()


def test_cells_at_work_are_unknown_and_others_find_no_engine_and_the_next_start_removes_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, at = tmp_path / "results", tmp_path / "engine.sock"
    protocols = [word for name in PROTOCOLS for word in ("--protocol", name)]
    with between(at) as address:
        suite = subprocess.Popen(
            [*PLAY, *protocols, "--jobs", "2", "--seed", "1", "--results", str(results)],
            env={**os.environ, "DOCKER_HOST": address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert until(lambda: bool(at_work(results)) or suite.poll() is not None, 3 * limits.CONDITION_WAIT_S_MAX)
        working = at_work(results)
    said, errors = suite.communicate()
    assert (EXIT_CODES["unknown"], "") == (suite.returncode, errors), said
    [table] = results.glob("2*/suite.json")
    cells = json.loads(table.read_text("utf-8"))["cells"]
    assert {"unknown"} == {cell["status"] for cell in cells}
    reasons = {f"{cell['scenario']}-{cell['protocol']}": cell["reason"] for cell in cells}
    lost = f"engine {address}: lost: "
    assert len(PROTOCOLS) == len(reasons)
    assert all(lost in reasons[name] for name in working), reasons
    begun = {name for name, reason in reasons.items() if lost in reason}
    none = f"Docker: no engine answers at {address} ("
    assert all(reason.startswith(none) for name, reason in reasons.items() if name not in begun), reasons
    assert begun != set(reasons)
    tokens = [path.name for path in runs_dir().iterdir() if path.is_dir()]
    assert any("zookeeper" in name for name in of_runs(tokens))
    with between(at) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        host = DockerHost(tmp_path / "next", power_tier="watermark")
        host.open()
        host.close()
    monkeypatch.delenv("DOCKER_HOST")
    assert () == host.reaped.left
    assert [] == of_runs(tokens)
    assert [] == mounts.mounts_below(results)
    assert [] == [path for path in runs_dir().iterdir() if path.is_dir()]
