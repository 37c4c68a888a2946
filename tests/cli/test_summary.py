"""`fencepost summary` replaces only summaries, leaves nothing half, and prints what was asked for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from checkers.measures.schema import FOLDER, VERSION, write_schema
from harness.cli import summary
from harness.cli.main import main
from harness.model import EXIT_CODES
from tests.checkers.measures.histories import golden
from tests.checkers.measures.stored import result, store_suite
from tests.report.test_summary_page import frames

Frames = Mapping[str, pd.DataFrame]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store two suites; what Spark does is done by a data set without rows and frames that are there."""
    for name in ("one", "two"):
        histories = {"kip101-1-hw": golden().lines()}
        store_suite(
            tmp_path / "r" / name, [result("kip101-1", "hw")], histories, started="2026-11-20T22:00:00+00:00"
        )

    def summarized(_found: Any, out: Path, *_: Any) -> Frames:
        (out / FOLDER).mkdir()
        write_schema(out / FOLDER)
        return frames(tmp_path / "r")

    monkeypatch.setattr(summary, "_summarize", summarized)
    return tmp_path / "r"


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_summary_is_below_the_folder_that_was_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A suite cannot be read in these frames.
    assert EXIT_CODES["unknown"] == main(["summary", str(results)])
    out = capsys.readouterr().out
    assert "by night" in out
    assert f"page: {results / 'summary' / 'summary.html'}" in out
    assert ["data", "summary.html"] == _left(results / "summary")
    assert ["one", "summary", "two"] == _left(results)


def test_summary_of_several_folders_is_where_all_of_them_are(results: Path) -> None:
    main(["summary", str(results / "one"), str(results / "two")])
    assert ["data", "summary.html"] == _left(results / "summary")
    assert (
        VERSION
        == json.loads((results / "summary" / FOLDER / "schema.json").read_text(encoding="utf-8"))["version"]
    )


def test_summary_is_replaced_and_is_no_suite(results: Path) -> None:
    for _ in range(2):
        main(["summary", str(results)])
        (results / "summary" / "old").touch()
    assert ["data", "old", "summary.html"] == _left(results / "summary")


def test_folder_that_is_no_summary_is_never_replaced(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "summary").mkdir()
    (results / "summary" / "precious").touch()
    assert EXIT_CODES["usage"] == main(["summary", str(results)])
    assert "already there, and no summary; expected a new name (--out)" in capsys.readouterr().err
    assert ["precious"] == _left(results / "summary")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("Spark ended"), OSError(28, "No space left")])
def test_summary_that_fails_leaves_the_old_one_whole_and_nothing_else(
    results: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    main(["summary", str(results)])
    (results / "summary" / "old").touch()

    def failing(_found: Any, out: Path, *_: Any) -> Frames:
        (out / FOLDER).mkdir()
        raise error

    monkeypatch.setattr(summary, "_summarize", failing)
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError):
            main(["summary", str(results)])
    else:
        assert {EXIT_CODES["usage"], 130} >= {main(["summary", str(results)])}
    assert ["data", "old", "summary.html"] == _left(results / "summary")
    assert ["one", "summary", "two"] == _left(results)


def test_json_is_all_that_is_printed(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["summary", str(results), "--json", "--out", str(results / "new")])
    printed = json.loads(capsys.readouterr().out)
    assert {"version", "data", "page", "tables"} == printed.keys()
    assert {*summary.TABLES, "totals"} == printed["tables"].keys()
    assert str(results / "new" / "data") == printed["data"]
    assert {"night": None, "suite": "one", "run": None, "reason": "suite.json: cut"} == printed["tables"][
        "unreadable"
    ][0]


@pytest.mark.parametrize("table", summary.TABLES)
def test_csv_is_one_table(results: Path, capsys: pytest.CaptureFixture[str], table: str) -> None:
    main(["summary", str(results), "--csv", table])
    expected = frames(results)[table]
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert [*expected.columns] == head
    assert len(expected) == len(rows)
