"""What clients of a workload need of a run: its history and its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cleanup.ledger import Ledger
from harness.history.file import History


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Open a history in a folder of its own."""
    (tmp_path / "run").mkdir()
    with History(tmp_path / "run" / "history.jsonl") as made:
        yield made


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Open a ledger; what a test leaves in it is undone."""
    made = Ledger.open(tmp_path / "run", root=tmp_path / "ledgers")
    try:
        yield made
    finally:
        made.close()
