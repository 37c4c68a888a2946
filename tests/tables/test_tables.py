"""The tables of a history have every op of it, whatever the history is, and are never half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from checkers.judge import check_in_process
from harness.history.file import read_history
from harness.model import Op, OpType, PartOps, Source
from harness.tables.manifest import FOLDER, Manifest, TablesError, table_path
from harness.tables.schema import SCHEMAS
from harness.tables.writer import hashes, make_tables, read_manifest
from tests.checkers.golden import M1, RECORDS, replicated
from tests.checkers.plants.histories import HISTORIES
from tests.checkers.story import TOPIC, Story
from tests.kept import exhaustive
from tests.tables.stored import all_ops, silent, stored


def _seen(ops: Sequence[Op]) -> list[tuple[Any, ...]]:
    return [(op.index, op.time_ns, op.process, op.type, op.f, _value(op)) for op in ops]


def _value(op: Op) -> object:
    try:
        return op.event
    except Exception:
        return dict(op.value)


@exhaustive
@pytest.mark.slow
def test_tables_of_every_golden_and_plant_have_every_op(tmp_path: Path) -> None:
    irregular = 0
    # One plant of three has every sort of op.
    for number, ops in enumerate(HISTORIES[name] for name in [*HISTORIES][::3]):
        by_index = {op.index: op for op in ops}
        if len(by_index) < len(ops) or not any(op.place for op in ops):
            continue  # its breaks are in the manifest; and a run without a partition has no rows but events
        manifest = stored(ops, tmp_path / str(number))
        assert _seen([by_index[index] for index in sorted(by_index)]) == _seen(all_ops(tmp_path / str(number)))
        assert len(ops) == manifest.ops
        irregular += bool(manifest.irregular)
    assert 3 < irregular < 50


@pytest.mark.parametrize("name", ["lost-bad", "diverged-bad", "reads-goes-back"])
def test_tables_of_silent_brokers_are_judged_as_their_history(tmp_path: Path, name: str) -> None:
    ops = silent(HISTORIES.get(name, HISTORIES["order-bad"]))
    stored(ops, tmp_path / "tables")
    assert check_in_process(PartOps(ops)) == check_in_process(all_ops(tmp_path / "tables"))


# --- what depends on the order of ops --------------------------------------------------------------------------
def _rows(story: Story, folder: Path, name: str) -> list[dict[str, Any]]:
    stored(story.ops, folder)
    rows: list[dict[str, Any]] = pq.read_table(table_path(folder, name)).to_pylist()
    return rows


def test_produce_knows_what_was_acknowledged_before_it_was_sent_and_before_it_was_answered(tmp_path: Path) -> None:
    story = replicated("kip101")
    rows = _rows(story, tmp_path / "tables", "produces")
    assert [("m1-0", -1, -1), ("m1-1", -1, 0), ("m1-2", -1, 1), ("m2-0", 2, 2), ("m2-1", 2, 3)] == [
        (row["value"], row["floor"], row["behind"]) for row in rows
    ]
    assert {True} == {row["rising"] for row in rows}


def test_value_that_is_sent_again_does_not_rise(tmp_path: Path) -> None:
    story = Story(RECORDS).sends("m1").acked("m1", 0).sends("m1").acked("m1", 3)
    rows = _rows(story, tmp_path / "tables", "produces")
    assert [True] * 3 + [False] * 3 == [row["rising"] for row in rows]


@pytest.mark.parametrize(
    ("batches", "odd"),
    [
        ([(0, M1), (0, ["x"]), (1, ["y"])], [False, False, False]),
        ([(0, M1), (0, ["x"], 5)], [False, True]),
        ([(0, M1), (0, ["x"], 1), (0, ["y"], 3)], [False, True, False]),
        ([(1, M1), (0, ["x"]), (0, ["y"])], [False, True, False]),
    ],
    ids=["sound", "gap", "back", "epoch-falls"],
)
def test_batch_is_odd_where_a_log_does_not_go_on(
    tmp_path: Path, batches: Sequence[tuple[Any, ...]], odd: list[bool]
) -> None:
    rows = _rows(Story(RECORDS).log("A", batches), tmp_path / "tables", "batches")
    assert odd == [row["odd"] for row in rows]


def test_fetch_knows_what_was_promised_before_it(tmp_path: Path) -> None:
    story = replicated("kip101").append("A", 5, 6, 0, "follower")
    rows = [row for row in _rows(story, tmp_path / "tables", "events") if row["f"] == "fetch"]
    assert (-1, 4) == (rows[0]["floor"], rows[-1]["floor"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda op: replace(op, value={**op.value, "crc": 2**70}), "number beyond 64 bits"),
        (lambda op: replace(op, value={**op.value, "records": [[0, "short", "x"]]}), "expected 16 hexadecimal"),
        (lambda op: replace(op, value={**op.value, "records": [[0, "0" * 16, None]]}), "record without a value"),
        (lambda op: replace(op, value={**op.value, "more": 1}), "'more'"),
        (lambda op: replace(op, type=OpType.INFO), "has type info"),
    ],
)
def test_op_that_does_not_fit_is_an_event_and_its_partition_irregular(
    tmp_path: Path, change: Any, why: str
) -> None:
    ops = Story(RECORDS).log("A", [(0, M1)]).ops
    (batch,) = [op for op in ops if op.f == "batch"]
    ops[batch.index] = change(batch)
    manifest = stored(ops, tmp_path / "tables")
    assert why in manifest.irregular["t-0"]
    assert _seen(ops) == _seen(all_ops(tmp_path / "tables"))


def test_completion_without_its_invoke_is_irregular(tmp_path: Path) -> None:
    ops = [op for op in Story(RECORDS).sends("m1").acked("m1", 0).ops if op.index != 2]
    assert "ended without an invoke" in stored(ops, tmp_path / "tables").irregular["t-0"]


def test_partition_that_only_the_runner_names_has_no_rows(tmp_path: Path) -> None:
    ops = Story(RECORDS).ops
    assert () == stored(ops, tmp_path / "tables").parts
    assert TOPIC["topic"] == ops[0].value["topic"]


def test_text_has_the_same_hash_always() -> None:
    assert hashes(["w-1", "w-2"]).tolist() == hashes(["w-1", "w-2"]).tolist()
    assert 1_000 == len({*hashes([f"w-{n}" for n in range(1_000)]).tolist()})


# --- files -----------------------------------------------------------------------------------------------------
def _history(folder: Path) -> Path:
    path = folder / "history.jsonl"
    path.write_text("".join(op.to_json() + "\n" for op in HISTORIES["lost-bad"]), encoding="utf-8")
    return path


def test_tables_are_there_when_they_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = _history(tmp_path)
    monkeypatch.setattr("harness.tables.writer.ROWS", 3)  # several row groups
    assert tmp_path / FOLDER == make_tables(history)
    manifest = read_manifest(history)
    assert manifest == Manifest.read(tmp_path / FOLDER)
    assert (len(HISTORIES["lost-bad"]), history.stat().st_size) == (manifest.ops, manifest.size)
    assert _seen(read_history(history)) == _seen(all_ops(tmp_path / FOLDER))
    assert ["history.jsonl", FOLDER] == sorted(path.name for path in tmp_path.iterdir())
    assert pq.ParquetFile(table_path(tmp_path / FOLDER, "events")).num_row_groups > 3


def test_tables_of_a_writer_that_was_killed_are_not_taken_for_whole(tmp_path: Path) -> None:
    history = _history(tmp_path)
    make_tables(history)
    (tmp_path / FOLDER).rename(tmp_path / "tables.partial")
    (tmp_path / "tables.partial" / "manifest.json").unlink()
    with pytest.raises(TablesError, match=r"manifest\.json"):
        read_manifest(history)
    make_tables(history)
    assert read_manifest(history)
    assert not (tmp_path / "tables.partial").exists()


def test_tables_of_another_history_are_refused(tmp_path: Path) -> None:
    history = _history(tmp_path)
    make_tables(history)
    history.write_bytes(history.read_bytes() * 2)
    with pytest.raises(TablesError, match="made from a history of"):
        read_manifest(history)


def test_torn_last_line_is_left_out_and_a_line_that_is_no_op_is_an_event(tmp_path: Path) -> None:
    history = _history(tmp_path)
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join([*lines[:5], b"nonsense\n", *lines[6:]])[:-9])
    make_tables(history)
    assert _seen(read_history(history)) == _seen(all_ops(tmp_path / FOLDER))
    assert len(lines) - 1 == read_manifest(history).ops


def test_breaks_in_the_order_of_ops_are_in_the_manifest(tmp_path: Path) -> None:
    ops = HISTORIES["lost-bad"]
    gap = [op for op in ops if op.index != 9]
    late = [replace(op, time_ns=0) if op.index == 20 else op for op in ops]
    assert ((8, 10),) == stored(gap, tmp_path / "gap").skips
    assert [20] == [index for index, _, _ in stored(late, tmp_path / "late").falls]


@pytest.mark.parametrize("name", [*SCHEMAS])
def test_columns_have_the_types_that_they_say(tmp_path: Path, name: str) -> None:
    make_tables(_history(tmp_path))
    assert SCHEMAS[name].equals(pq.read_schema(table_path(tmp_path / FOLDER, name)), check_metadata=False)


def test_client_of_an_older_history_may_not_have_said_what_it_sent(tmp_path: Path) -> None:
    ops = Story(RECORDS).sends("m1").acked("m1", 0).ops
    assert all(op.source is not Source.CLIENT or "digest" not in op.value for op in ops)
    stored(ops, tmp_path / "tables")
    assert {None} == set(pq.read_table(table_path(tmp_path / "tables", "produces")).column("digest").to_pylist())
