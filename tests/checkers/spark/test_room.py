"""A partition that does not fit into the free memory is unknown, and the machine keeps its memory."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from checkers import CHECKERS
from checkers.spark import room
from checkers.spark.assemble import EVENT, Context
from checkers.spark.executor import rows_judge
from harness.model import Anomaly, Kind

CONTEXT = Context(place=("t", 0), replicas={})


def _memory(folder: Path, monkeypatch: pytest.MonkeyPatch, free_kib: int, **group: str) -> None:
    (folder / "meminfo").write_text(f"MemTotal: 99999 kB\nMemAvailable: {free_kib} kB\n", encoding="ascii")
    for name, text in group.items():
        (folder / f"memory.{name}").write_text(f"{text}\n", encoding="ascii")
    monkeypatch.setattr(room, "_MEMINFO", folder / "meminfo")
    monkeypatch.setattr(room, "_GROUP", folder)


def test_free_memory_is_that_of_the_machine_or_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _memory(tmp_path, monkeypatch, 100)
    assert 102_400 == room.free_bytes()
    _memory(tmp_path, monkeypatch, 100, max="max", current="5000")
    assert 102_400 == room.free_bytes()
    _memory(tmp_path, monkeypatch, 100, max="9000", current="5000")
    assert 4_000 == room.free_bytes()
    _memory(tmp_path, monkeypatch, 100, max="4000", current="5000")
    assert 0 == room.free_bytes()


def test_where_memory_is_not_known_everything_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MEMINFO", tmp_path / "none")
    monkeypatch.setattr(room, "_GROUP", tmp_path)
    assert (None, "") == (room.free_bytes(), room.lacking(10**12))


def _judged(rows: int) -> list[Anomaly]:
    event = {"index": 0, "time_ns": 0, "source": "runner", "process": "runner", "type": "info", "f": "done"}
    table = pa.Table.from_pylist([{**event, "value": "{}", "piece": EVENT}] * rows)
    found = rows_judge(CHECKERS, {(0, 0): CONTEXT})(((0, 0), [table]))
    return [Anomaly.from_dict(json.loads(row["anomaly"])) for _, row in found if row["anomaly"]]


def test_partition_for_which_there_is_no_room_is_unknown_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _memory(tmp_path, monkeypatch, 2 * 3 * room.OP_BYTES // 1024 - 1)
    (found,) = _judged(3)
    assert Kind.UNCHECKED is found.kind
    assert "t-0 could not be judged: 3 ops must be judged together" in found.sentence
    _memory(tmp_path, monkeypatch, 2 * 3 * room.OP_BYTES // 1024 + 1)
    assert not any("must be judged together" in each.sentence for each in _judged(3))
