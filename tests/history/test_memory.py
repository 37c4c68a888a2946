"""A history in memory behaves like one in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.history.file import History, read_history
from harness.history.memory import MemoryHistory
from harness.model import HistoryError, Op, OpType, Source


def record(history: History) -> None:
    history.record_line(Source.RUNNER, "runner", OpType.INFO, "setup", {"nodes": {"A": 1}})
    history.record_line(Source.BROKER, "A", OpType.INFO, "ready")


def test_memory_holds_what_a_file_would(tmp_path: Path) -> None:
    ticks = iter(range(100, 200, 10))
    memory = MemoryHistory(Path("x"), lambda: next(ticks))
    record(memory)
    ticks = iter(range(100, 200, 10))
    with History(tmp_path / "history.jsonl", lambda: next(ticks)) as history:
        record(history)
    assert read_history(tmp_path / "history.jsonl") == memory.ops


def test_memory_tells_its_listeners_and_copies_what_it_is_given() -> None:
    memory, heard = MemoryHistory(Path("x"), lambda: 0), list[Op]()
    memory.listeners.append(heard.append)
    value = {"node": "A"}
    memory.record_line(Source.RUNNER, "runner", OpType.INFO, "note", value)
    value["node"] = "B"
    assert [{"node": "A"}] == [op.value for op in heard]
    assert heard == memory.ops


def test_memory_takes_nothing_once_it_is_closed() -> None:
    memory = MemoryHistory(Path("x"), lambda: 0)
    memory.close()
    memory.close()
    with pytest.raises(HistoryError, match="records 'note' after the history was closed"):
        memory.record_line(Source.RUNNER, "runner", OpType.INFO, "note")
