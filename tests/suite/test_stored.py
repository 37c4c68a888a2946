"""Stored runs are found wherever they are, each once, with what is stored of its verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.model import Anomaly, Kind, UsageError
from harness.run.store import Run, write_anomalies
from harness.suite.stored import Stored, StoredRun, find_stored
from tests.needs import needs
from tests.report.samples import sample_result, suite_of

LOST = Anomaly(kind=Kind.LOST, topic="t", partition=0, ranges=((1, 2),), nodes=("A",), epoch=3, sentence="x")


def run_in(suite: Path, name: str, lines: str = "{}\n") -> Run:
    """Make a run's folder with a history."""
    (suite / name).mkdir(parents=True)
    run = Run(path=suite / name)
    run.history.write_text(lines, encoding="utf-8")
    return run


def suite_in(folder: Path, *protocols: str) -> Path:
    """Store a suite with a run for each protocol."""
    results = [sample_result("kip101-1", protocol, anomalies=(LOST,)) for protocol in protocols]
    for result in results:
        run_in(folder, result.run)
    suite_of(results).write(folder / "suite.json")
    return folder


def names(stored: Stored) -> list[tuple[str, str]]:
    return [(suite.folder.path.name, each.run.name) for suite in stored.suites for each in suite.runs]


def only(stored: Stored) -> StoredRun:
    ((run,),) = [suite.runs for suite in stored.suites]
    return run


def test_runs_of_suites_in_suites_are_found_each_once(tmp_path: Path) -> None:
    suite_in(tmp_path / "a", "hw", "kip101")
    suite_in(tmp_path / "deep" / "b", "hw")
    run_in(tmp_path / "search", "random-7")
    (tmp_path / "latest").symlink_to("a")
    expected = [("a", "kip101-1-hw"), ("a", "kip101-1-kip101"), ("b", "kip101-1-hw"), ("search", "random-7")]
    assert expected == names(find_stored([tmp_path]))
    assert expected == names(find_stored([tmp_path, tmp_path / "a", tmp_path / "deep" / "b" / "kip101-1-hw"]))
    assert expected[:2] == names(find_stored([tmp_path / "latest"]))


def test_folder_of_one_run_is_that_run_with_its_result_in_the_suite(tmp_path: Path) -> None:
    suite_in(tmp_path, "hw", "kip101")
    run = only(find_stored([tmp_path / "kip101-1-hw"]))
    assert run.result is not None
    assert ("kip101-1-hw", (LOST,)) == (run.result.run, run.anomalies)


def test_run_with_only_tables_is_one_and_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "made" / "tables" / "below").mkdir(parents=True)
    (tmp_path / "made" / "tables" / "manifest.json").touch()
    (tmp_path / "made" / "tables" / "below" / "history.jsonl").touch()
    assert ("made", "") == (only(find_stored([tmp_path])).run.name, only(find_stored([tmp_path])).problem)


def test_result_in_the_suite_counts_before_the_runs_own_anomalies(tmp_path: Path) -> None:
    suite_in(tmp_path, "hw")
    write_anomalies(Run(path=tmp_path / "kip101-1-hw"), [])
    assert (LOST,) == only(find_stored([tmp_path])).anomalies
    (tmp_path / "suite.json").unlink()
    assert () == only(find_stored([tmp_path])).anomalies
    (tmp_path / "kip101-1-hw" / "anomalies.json").unlink()
    assert only(find_stored([tmp_path])).anomalies is None


def test_result_without_a_history_is_a_run_that_cannot_be_checked(tmp_path: Path) -> None:
    suite_in(tmp_path, "hw")
    (tmp_path / "kip101-1-hw" / "history.jsonl").unlink()
    run = only(find_stored([tmp_path]))
    assert run.problem.endswith(
        "history.jsonl: No such file or directory; expected a run's history, or its tables beside it"
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("nowhere")])
def test_history_that_is_no_file_is_not_opened(tmp_path: Path, make: object) -> None:
    (tmp_path / "run").mkdir()
    make(tmp_path / "run" / "history.jsonl")  # type: ignore[operator]
    assert "expected a run's history" in only(find_stored([tmp_path])).problem


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"kind": "lost"}]', '[{"kind": "moon"}]', "[" * 100_000])
def test_anomalies_that_cannot_be_read_are_a_doubt_of_their_run(tmp_path: Path, text: str) -> None:
    run = run_in(tmp_path, "run")
    run.anomalies.write_text(text, encoding="utf-8")
    run_in(tmp_path, "other")
    other, broken = find_stored([tmp_path]).suites[0].runs
    assert ("", None) == (other.doubt, other.anomalies)
    assert (True, None) == ("anomalies.json: " in broken.doubt, broken.anomalies)
    assert broken.doubt.endswith("expected the anomalies of a run")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("nowhere")])
def test_anomalies_that_are_no_file_are_not_waited_for(tmp_path: Path, make: object) -> None:
    make(run_in(tmp_path, "run").anomalies)  # type: ignore[operator]
    assert "anomalies.json: " in only(find_stored([tmp_path])).doubt


def test_suite_whose_table_is_cut_has_its_runs_and_a_problem(tmp_path: Path) -> None:
    suite = suite_in(tmp_path / "a", "hw")
    text = (suite / "suite.json").read_text(encoding="utf-8")
    (suite / "suite.json").write_text(text[: len(text) // 2], encoding="utf-8")
    suite_in(tmp_path / "b", "hw")
    cut, whole = find_stored([tmp_path]).suites
    assert "suite.json: JSONDecodeError: " in cut.problem
    assert (None, None, "") == (cut.suite, cut.runs[0].result, whole.problem)


@pytest.mark.parametrize(("name", "says"), [
    ("missing", "missing: No such file or directory; expected a run's folder, a suite's, or one with"),
    ("file", "file: Not a directory; expected"),
    ("empty", "empty: no run there; expected"),
    ("loop", "loop: "),
])  # fmt: skip
def test_what_has_no_run_is_wrong_use(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    run_in(tmp_path / "suite", "run")
    with pytest.raises(UsageError, match=says):
        find_stored([tmp_path / "suite", tmp_path / name])


def test_suite_of_no_run_whose_table_is_cut_says_so(tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"suite\.json: JSONDecodeError"):
        find_stored([tmp_path])


@needs("plain-user")
def test_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    run_in(tmp_path / "a", "run")
    (tmp_path / "b").mkdir(mode=0)
    named = f"{tmp_path / 'b'}: Permission denied; expected a folder that can be listed"
    assert [named] == list(find_stored([tmp_path]).unlisted)
