"""The version and the commit that are printed, and recorded in histories, suites and nights."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import version
from harness.cli.main import main
from harness.events.runner import Setup
from harness.model import Op, OpType
from harness.run.player import setup_event
from targets.broker_target.target import TARGET
from tests.needs import needs
from tests.specs import cluster_spec


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The code stands in an environment's folder, inside of a checkout of something else."""
    packages = tmp_path / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(version, "ROOT", packages)
    version.version.cache_clear()
    yield packages
    version.version.cache_clear()


def test_version_is_that_of_the_project_and_of_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert importlib.metadata.version("fencepost") == version.version()
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (0, f"fencepost {version.version()}\n") == (ended.value.code, capsys.readouterr().out)


@needs("git")
def test_installed_package_has_a_version_and_not_the_commit_of_the_checkout_around_it(installed: Path) -> None:
    assert (importlib.metadata.version("fencepost"), "unknown") == (version.version(), version.commit())
    assert f"fencepost {version.version()}" == version.build()


def test_checkout_has_a_commit_or_git_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert version.commit()
    monkeypatch.setattr(version, "ROOT", tmp_path)
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).write_text('[project]\nversion = "7"\n')
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "unknown" == version.commit()


def test_what_older_runs_lack_is_left_out_of_their_words() -> None:
    assert "fencepost 1, commit ab" == version.named("1", "ab")
    assert "commit ab" == version.named("", "ab")
    assert "commit unknown" == version.named("", "unknown")


def test_history_begins_with_the_version_and_an_older_one_is_read_without_it() -> None:
    spec = cluster_spec(TARGET, "kip380", {"A": 1, "B": 2}, ["B"])
    setup = setup_event(spec, traits=spec.traits, power_tier="none", sends_once=True)
    assert version.version() == setup.version
    first = Op.of(setup, index=0, time_ns=0, process=Setup.PROCESS, type=OpType.INFO)
    raw = json.loads(first.to_json())
    del raw["value"]["version"]
    older = Op.from_json(json.dumps(raw)).event
    assert isinstance(older, Setup)
    assert (None, setup.seed) == (older.version, older.seed)
