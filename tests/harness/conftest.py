"""A history and a cluster that only remembers, for tests of what plays on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.history.file import History
from tests.harness.fakes import FakeCluster


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A run's history."""
    with History(tmp_path / "history.jsonl") as history:
        yield history


@pytest.fixture
def cluster(history: History) -> FakeCluster:
    """A cluster that only remembers."""
    return FakeCluster(history)
