"""Stored results become rows as they are; a table that cannot be read becomes one row."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from checkers.measures.stored import STORED_SCHEMA, family_of, night_of, stored_rows
from harness.model import Verdict
from harness.run.result import Activity, Status
from tests.checkers.measures.stored import LOST, result, store_suite

STARTED = "2026-11-21T01:30:00+00:00"


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [*stored_rows("/r/s1", (folder / "suite.json").read_bytes())]


def test_results_and_anomalies_are_rows_as_they_were_stored(tmp_path: Path) -> None:
    odd = replace(
        result("kip101-1", "kip101+fence_fetch=no", Verdict.INVALID, LOST),
        status=Status.MISMATCH,
        activity=Activity(elections=4),
    )
    store_suite(tmp_path / "s", [result("kip101-1", "hw"), odd], {}, started=STARTED, host="sim")
    first, second, lost = _rows(tmp_path / "s")
    assert ("run", "hw", "hw", "valid", 0) == tuple(
        first[k] for k in ("what", "protocol", "family", "verdict", "place")
    )
    about = (
        "path",
        "night",
        "suite",
        "family",
        "release",
        "host",
        "clock",
        "status",
        "verdict",
        "elections",
        "place",
    )
    assert (
        "/r/s1/kip101-1-kip101+fence_fetch=no",
        date(2026, 11, 20),
        "s1",
        "kip101 mutants",
        "broker",
        "sim",
        "virtual",
        "mismatch",
        "invalid",
        4,
        1,
    ) == tuple(second[key] for key in about)
    anomaly = ("what", "path", "kind", "verdict", "first", "end", "offsets", "nodes", "epoch", "checker")
    assert (
        "anomaly",
        second["path"],
        "lost",
        "invalid",
        [1, 5],
        [3, 6],
        3,
        ["A", "B"],
        3,
        "lost",
    ) == tuple(lost[key] for key in anomaly)
    assert 3 == pa.RecordBatch.from_pylist([first, second, lost], schema=STORED_SCHEMA).num_rows


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "suite.json: JSONDecodeError"),
        (b"\xff\xfe", "can't decode byte 0xff"),
        (b"[" * 100_000, "suite.json: RecursionError"),
        (b'{"cells": []}', "suite.json: KeyError: 'rules'"),
    ],
)
def test_table_that_cannot_be_read_is_one_row(content: bytes, reason: str) -> None:
    (row,) = stored_rows("/r/s1", content)
    assert ("unreadable", "/r/s1", "s1") == (row["what"], row["folder"], row["suite"])
    assert reason in row["reason"]


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.99])
def test_table_that_was_cut_is_one_row_wherever_it_was_cut(tmp_path: Path, cut: float) -> None:
    store_suite(tmp_path / "s", [result("kip101-1", "hw")] * 3, {}, started=STARTED)
    content = (tmp_path / "s" / "suite.json").read_bytes()
    assert ["unreadable"] == [row["what"] for row in stored_rows("/r/s1", content[: int(len(content) * cut)])]


@pytest.mark.parametrize("started", ["", "yesterday", "2026-11-21T01:30:00"])
def test_suite_whose_night_is_not_known_is_one_row(tmp_path: Path, started: str) -> None:
    store_suite(tmp_path / "s", [result("kip101-1", "hw")], {}, started=started)
    (row,) = _rows(tmp_path / "s")
    assert f"started {started!r}; expected a date and a time with its offset from UTC" in row["reason"]


def test_older_suite_without_activity_has_no_elections(tmp_path: Path) -> None:
    store_suite(tmp_path / "s", [result("kip101-1", "hw")], {}, started=STARTED)
    raw = json.loads((tmp_path / "s" / "suite.json").read_text(encoding="utf-8"))
    del raw["cells"][0]["activity"]
    (row,) = stored_rows("/r/s1", json.dumps(raw).encode())
    assert 0 == row["elections"]


def test_night_lasts_from_noon_to_noon_wherever_the_clock_stands() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert date(2026, 11, 21) == night_of(noon)
    assert date(2026, 11, 20) == night_of(noon - timedelta(microseconds=1))
    assert date(2026, 11, 20) == night_of(datetime(2026, 11, 21, 13, tzinfo=timezone(timedelta(hours=2))))


def test_mutants_are_a_family_of_their_own() -> None:
    assert "kip380" == family_of("kip380", changed=False)
    assert (
        "kip380 mutants" == family_of("kip380+fence_fetch=no", changed=False) == family_of("kip380", changed=True)
    )
