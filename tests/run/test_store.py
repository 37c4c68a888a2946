"""The folders of a suite, and the files of a run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.history.file import History
from harness.model import Anomaly, Kind, OpType, Source, UsageError
from harness.run.store import Run, create_suite, read_anomalies, write_anomalies


def _run(results: Path) -> Run:
    run = create_suite(results, "suite-1").create_run("scenario1-hw")
    with History(run.history, clock=lambda: 7) as history:
        history.record_line(Source.RUNNER, "runner", OpType.INFO, "healed", {"missing": []})
        history.record_line(
            Source.BROKER, "A", OpType.INFO, "append", {"topic": "t", "partition": 3, "base": 0, "end": 2}
        )
    return run


def test_suite_lays_out_its_files_as_the_readme_says(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert tmp_path / "suite-1" / "scenario1-hw" / "history.jsonl" == run.history
    assert run.logs.is_dir()
    readme = (Path(__file__).parents[2] / "results" / "README.md").read_text(encoding="utf-8")
    suite = create_suite(tmp_path, "suite-2")
    for path in (suite.suite, suite.report, run.history, run.tables, run.anomalies):
        assert path.name in readme


def test_latest_points_to_the_newest_suite(tmp_path: Path) -> None:
    for name in ("suite-1", "suite-2"):
        suite = create_suite(tmp_path, name)
        assert suite.path.resolve() == (tmp_path / "latest").resolve()
    assert ["latest", "suite-1", "suite-2"] == sorted(path.name for path in tmp_path.iterdir())


def test_suites_made_side_by_side_each_replace_the_link(tmp_path: Path) -> None:
    names = [f"suite-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda name: create_suite(tmp_path, name), names))
    assert names == [suite.path.name for suite in made]
    assert ["latest", *sorted(names)] == sorted(path.name for path in tmp_path.iterdir())


def test_create_refuses_a_name_that_is_there(tmp_path: Path) -> None:
    suite = create_suite(tmp_path, "suite-1")
    suite.create_run("a")
    with pytest.raises(UsageError, match="already there"):
        suite.create_run("a")
    with pytest.raises(UsageError, match="already there"):
        create_suite(tmp_path, "suite-1")


def test_runs_are_those_with_a_history(tmp_path: Path) -> None:
    suite = create_suite(tmp_path, "suite-1")
    for name in ("b", "a", "empty"):
        suite.create_run(name)
    for name in ("b", "a"):
        (suite.path / name / "history.jsonl").touch()
    assert ["a", "b"] == [run.name for run in suite.runs()]


def test_anomalies_read_back_as_written(tmp_path: Path) -> None:
    run = _run(tmp_path)
    found = [Anomaly(kind=Kind.LOST, topic="t", partition=3, ranges=((1, 2),), nodes=("A",), proof=(1,))]
    write_anomalies(run, found)
    assert found == read_anomalies(run)


def test_what_oracles_saw_is_written_apart_and_only_where_they_saw_something(tmp_path: Path) -> None:
    run = _run(tmp_path)
    lost = Anomaly(kind=Kind.LOST, topic="t", partition=3, sentence="m1 is gone.")
    write_anomalies(run, [lost])
    assert not run.oracles.exists()
    seen = Anomaly(kind=Kind.ORACLE_PREFIX, topic="t", partition=3, sentence="Step 7: A and B differ.")
    write_anomalies(run, [seen, lost])
    assert [seen, lost] == read_anomalies(run)
    assert "prefix: Step 7: A and B differ.\n" == run.oracles.read_text(encoding="utf-8")
