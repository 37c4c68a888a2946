"""The history that a client writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.history.file import History


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "history.jsonl") as made:
        yield made
