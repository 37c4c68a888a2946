"""Each test has its own folder for results and state, and the test process uses the same state folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup.ledger import reap
from tests.endings.command import PAUSED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder for everything that the command creates; reap afterwards, in case the test failed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path.resolve()
    reap()


@pytest.fixture
def paused(tmp_path: Path) -> str:
    """Return a folder with the one scenario that leaves everything outstanding."""
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (scenarios / "kip101-paused.txt").write_text(PAUSED, encoding="utf-8")
    return str(scenarios)
