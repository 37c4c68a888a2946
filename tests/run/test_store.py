"""The folders of a suite, and the files of a run."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
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


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_suites_of_one_name_that_are_made_at_once_are_folders_of_their_own(
    tmp_path: Path, pool: type[ThreadPoolExecutor | ProcessPoolExecutor]
) -> None:
    many = 24
    with pool(4) as workers:
        made = [suite.path for suite in workers.map(create_suite, [tmp_path] * many, ["suite"] * many)]
    names = {"suite", *(f"suite-{number}" for number in range(2, many + 1))}
    assert names == {path.name for path in made}
    assert {"latest", *names} == {path.name for path in tmp_path.iterdir()}
    assert os.readlink(tmp_path / "latest") in names


def test_second_command_of_one_second_and_seed_leaves_the_first_ones_folder_alone(tmp_path: Path) -> None:
    first = create_suite(tmp_path, "20261128T170000-7")
    first.suite.write_text("{}")
    second = create_suite(tmp_path, "20261128T170000-7")
    assert ("20261128T170000-7-2", [], "{}") == (
        second.path.name,
        list(second.path.iterdir()),
        first.suite.read_text(),
    )
    assert second.path.resolve() == (tmp_path / "latest").resolve()


def test_results_whose_link_is_a_folder_are_refused_and_no_partial_link_is_left(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    with pytest.raises(UsageError, match=r"results folder .*; expected a folder that can be written"):
        create_suite(tmp_path, "suite-1")
    assert [] == list(tmp_path.glob(".latest*"))


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
