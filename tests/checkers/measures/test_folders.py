"""Suites and runs are found below what is named, each once; what is broken is listed, and ends nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checkers.measures.folders import find_folders
from checkers.measures.schema import FOLDER, SCHEMA_FILE
from harness.model import UsageError
from tests.checkers.measures.histories import golden
from tests.checkers.measures.stored import result, store_suite

STARTED = "2026-11-21T01:30:00+00:00"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        runs = {f"kip101-1-{protocol}": golden().lines() for protocol in ("hw", "kip101")}
        store_suite(
            tmp_path / "r" / name, [result("kip101-1", p) for p in ("hw", "kip101")], runs, started=STARTED
        )
    (tmp_path / "r" / "latest").symlink_to("two")
    return tmp_path / "r"


def test_suites_are_found_once_whatever_names_them(results: Path) -> None:
    found = find_folders([results, results / "one", results / "latest", results / "one" / "kip101-1-hw"])
    assert ["one", "two"] == [folder.name for folder in found.suites]
    assert (4, 0, {}, []) == (len(found.small), len(found.large), found.chosen, found.unreadable)


def test_folder_of_folders_is_searched_and_summaries_are_not(results: Path) -> None:
    (results / "summary" / FOLDER).mkdir(parents=True)
    (results / "summary" / FOLDER / SCHEMA_FILE).write_text("{}", encoding="utf-8")
    (results / "summary" / "x" / "run").mkdir(parents=True)
    (results / "summary" / "x" / "run" / "history.jsonl").write_bytes(b"\n")
    assert ["one", "two"] == [folder.name for folder in find_folders([results.parent]).suites]


def test_run_is_one_of_its_suite(results: Path) -> None:
    found = find_folders([results / "one" / "kip101-1-hw"])
    assert {results / "one": {"kip101-1-hw"}} == found.chosen
    assert [results / "one"] == found.suites
    assert ["kip101-1-hw"] == [run.name for run in found.small]


def test_long_history_is_measured_from_its_tables(results: Path) -> None:
    found = find_folders([results / "one"], lines_max=10)
    assert (0, 2) == (len(found.small), len(found.large))


def test_runs_without_a_table_are_measured_and_their_suite_is_untabled(results: Path) -> None:
    """A search keeps findings and writes no suite.json; its folder was unreadable."""
    (results / "one" / "suite.json").unlink()
    found = find_folders([results])
    assert ([results / "two"], [results / "one"]) == (found.suites, [*found.untabled])
    assert ["kip101-1-hw", "kip101-1-kip101"] == [run.name for run in found.untabled[results / "one"]]
    assert (4, []) == (len(found.small), found.unreadable)
    found = find_folders([results / "one" / "kip101-1-hw"])
    assert [["kip101-1-hw"]] == [[run.name for run in runs] for runs in found.untabled.values()]


def test_what_cannot_be_opened_is_listed(results: Path) -> None:
    (results / "one" / "suite.json").write_bytes(b"")
    two = results / "two"
    (two / "kip101-1-hw" / "history.jsonl").write_bytes(b"")
    os.remove(two / "kip101-1-kip101" / "history.jsonl")
    os.mkfifo(two / "kip101-1-kip101" / "history.jsonl")
    found = find_folders([results])
    assert [two] == found.suites
    assert [
        (results / "one", None, "suite.json: empty; expected the table of a suite that ended"),
        (two, "kip101-1-hw", "history.jsonl: empty; expected a run's history"),
        (two, "kip101-1-kip101", "history.jsonl: not a regular file; expected a run's history"),
    ] == found.unreadable


def test_suite_whose_table_is_no_file_is_listed(results: Path) -> None:
    (results / "one" / "suite.json").unlink()
    (results / "one" / "suite.json").mkdir()
    assert "suite.json: not a regular file" in find_folders([results]).unreadable[0][2]


def test_wrong_name_is_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    for name, problem in (("gone", "no such folder"), ("file", "not a folder"), ("empty", "no suite in it")):
        with pytest.raises(UsageError, match=f"{name}: {problem}; expected"):
            find_folders([results, tmp_path / name])
