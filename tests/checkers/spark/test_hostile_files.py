"""A file of a stored run that is anything at all makes that one unreadable, and never ends a summary."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.measures.folders import find_folders
from checkers.spark.measured import Batches, measure_lines, read_stored
from tests.checkers.measures.histories import golden
from tests.checkers.measures.stored import result, store_suite

STARTED = "2026-11-20T22:00:00+00:00"


def suite_text(folder: Path, *, started: str = STARTED) -> bytes:
    histories = {"kip101-1-hw": golden().lines()}
    store_suite(folder, [result("kip101-1", "hw")], histories, started=started)
    return (folder / "suite.json").read_bytes()


def rows_of(read: Callable[[Batches], Batches], files: dict[str, bytes]) -> list[dict[str, object]]:
    """Return the rows that executors make of files."""
    batch = pa.RecordBatch.from_pydict({"path": list(files), "content": list(files.values())})
    return [row for each in read(iter([batch])) for row in each.to_pylist()]


DAMAGES = {
    "empty": lambda _: b"",
    "truncated": lambda text: text[: len(text) // 2],
    "binary": lambda _: bytes(range(256)) * 9,
    "deep": lambda _: b"[" * 200_000 + b"]" * 200_000,
    "a list": lambda _: b"[1, 2]\n",
    "another object": lambda _: b'{"cells": 7}\n',
    "null": lambda _: b"null\n",
}
OF_SUITES = {
    **DAMAGES,
    "a huge seed": lambda text: text.replace(b'"seed": 0', b'"seed": 99999999999999999999999'),
    "a lone surrogate": lambda text: text.replace(b"kip101-1", b"\\ud800"),
    "the first moment": lambda text: text.replace(STARTED.encode(), b"0001-01-01T00:00:00+14:00"),
    "no moment": lambda text: text.replace(STARTED.encode(), b"yesterday"),
}
OF_HISTORIES = {
    **DAMAGES,
    "a huge time": lambda text: text.replace(b'"time_ns":', b'"time_ns":99999999999999999999999'),
    "a lone surrogate": lambda text: text.replace(b'"process":"', b'"process":"\\ud800'),
    "no number": lambda text: text.replace(b'"time_ns":', b'"time_ns":NaN,"x":'),
}


@pytest.mark.parametrize("damage", OF_SUITES.values(), ids=list(OF_SUITES))
def test_suites_table_that_is_anything_at_all_is_unreadable_and_the_next_is_read(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    text = suite_text(tmp_path / "good")
    damaged = damage(text)
    assert damaged != text
    rows = rows_of(read_stored, {"file:/r/bad/suite.json": damaged, "file:/r/good/suite.json": text})
    assert {("/r/good", "run")} <= {(row["folder"], row["what"]) for row in rows}
    (bad,) = (row for row in rows if row["folder"] == "/r/bad")
    assert ("unreadable", True) == (bad["what"], str(bad["reason"]).startswith("suite.json"))


@pytest.mark.parametrize("damage", OF_HISTORIES.values(), ids=list(OF_HISTORIES))
def test_history_that_is_anything_at_all_never_ends_the_measuring_of_the_next(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    suite_text(tmp_path / "good")
    text = (tmp_path / "good" / "kip101-1-hw" / "history.jsonl").read_bytes()
    damaged = damage(text)
    assert damaged != text
    rows = rows_of(measure_lines, {"file:/r/a/bad/history.jsonl": damaged, "file:/r/a/good/history.jsonl": text})
    assert {"run"} <= {row["what"] for row in rows if row["path"] == "/r/a/good"}
    assert [row for row in rows if row["path"] == "/r/a/bad"]


@pytest.mark.parametrize("name", ["suite.json", "kip101-1-hw/history.jsonl"])
@pytest.mark.parametrize("how", ["folder", "pipe", "nowhere"])
def test_file_that_is_none_is_named_with_what_was_expected(tmp_path: Path, name: str, how: str) -> None:
    suite_text(tmp_path / "r" / "good")
    suite_text(tmp_path / "r" / "bad")
    path = tmp_path / "r" / "bad" / name
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nowhere")
    found = find_folders([tmp_path / "r"])
    assert [(tmp_path / "r" / "bad", path.parent.name if "/" in name else None)] == [
        (folder, run) for folder, run, _ in found.unreadable
    ]
    assert all("expected" in why for *_, why in found.unreadable)
    assert tmp_path / "r" / "good" in found.suites
