"""Each test has a folder of its own for results and state, and looks at that state itself."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup.ledger import reap
from harness.suite.interrupts import SIGNALS
from tests.endings.command import PAUSED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the command under test keeps everything; a test that fails leaves nothing on the machine either."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path.resolve()
    reap()


@pytest.fixture
def paused(tmp_path: Path) -> str:
    """A folder with the one scenario that leaves everything outstanding."""
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (scenarios / "kip101-paused.txt").write_text(PAUSED, encoding="utf-8")
    return str(scenarios)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A command that runs in our own process takes our signals."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
