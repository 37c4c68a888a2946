"""A run is read wherever it lies: above, through a link, and under any letters that a path may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers import CHECKERS
from checkers.judge import check_in_process
from checkers.measures.folders import find_folders
from checkers.measures.schema import FOLDER
from checkers.spark.data_set import read_data_set, write_data_set
from checkers.spark.options import local_place, name_of, spark_path
from checkers.spark.runs import check_runs
from tests.checkers.measures.histories import golden
from tests.checkers.measures.stored import result, store_suite
from tests.kept import exhaustive

LETTERS = (
    "a b",
    "100%",
    "a%20b",
    "a#b",
    "a?b=c&d",
    "a+b",
    "ä ö",
    "a:b",
    "{a,b}[c]*",
    "back\\slash",
    "'quoted\"",
    "~",
)


def _above(folder: Path) -> Path:
    return folder.parent / "beside" / ".." / folder.name


def _above_through_a_link(folder: Path) -> Path:
    """Return a path whose `..` is not the folder that is written before it."""
    return folder.parent / "link" / ".." / folder.name


def _through_a_link(folder: Path) -> Path:
    return folder.parent / "straight" / folder.name


def _slashes(folder: Path) -> Path:
    return Path(f"/{folder}")


LINES_OR_TABLES = (pytest.param(2**20, id="lines"), pytest.param(0, id="tables", marks=exhaustive))

WAYS = (_above, _above_through_a_link, _through_a_link, _slashes)


@pytest.fixture
def suites(tmp_path: Path) -> list[Path]:
    """Return the folders of suites, each with a run, by each way and under all letters."""
    top = tmp_path / "top"
    for name in ("beside", "far/away"):
        (top / name).mkdir(parents=True)
    (top / "far" / "suite").mkdir()  # where one ends up who takes `..` off a path's text, and where nothing is
    (tmp_path / "elsewhere" / "in").mkdir(parents=True)
    found = []
    for place, way in enumerate(WAYS):
        base = tmp_path / "elsewhere" if way is _above_through_a_link else top
        suite = _suite(base / f"suite{place}")
        (base.parent / "top" / "link").unlink(missing_ok=True)
        (top / "link").symlink_to(tmp_path / "elsewhere" / "in")
        (top / "straight").unlink(missing_ok=True)
        (top / "straight").symlink_to(top)
        found.append(way(top / suite.name))
    return [*found, *(_suite(top / letters / f"suite{number}") for number, letters in enumerate(LETTERS, start=9))]


def _suite(folder: Path) -> Path:
    run = replace(result("kip101-1", "hw"), run=f"run-{folder.name}")
    store_suite(folder, [run], {run.run: golden().lines()}, started="2026-11-20T22:00:00+00:00")
    return folder


def _runs(suites: list[Path]) -> list[Path]:
    return [suite / f"run-{suite.name}" for suite in suites]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (lambda top: top / "a" / ".." / "b", lambda top: top / "b"),
        (lambda top: top / "link" / ".." / "b", lambda top: top / "far" / "b"),
        (lambda top: top / "link" / "b", lambda top: top / "link" / "b"),
        (lambda top: top / "link" / ".." / "link" / "b", lambda top: top / "far" / "link" / "b"),
        (lambda top: Path(f"/{top}/b"), lambda top: top / "b"),
        (lambda top: top / "b" / "..", lambda top: top),
    ],
)
def test_place_has_no_step_up_and_keeps_links_below_the_last(
    tmp_path: Path, way: Callable[[Path], Path], expected: Callable[[Path], Path]
) -> None:
    """Executors elsewhere have the same path, which may be through a link."""
    top = tmp_path.resolve()
    (top / "far" / "away").mkdir(parents=True)
    (top / "link").symlink_to(top / "far" / "away")
    assert expected(top) == local_place(way(top))
    assert f"file://{expected(top)}/x" == spark_path(way(top), "x")
    assert expected(top).name == name_of(way(top))


def test_place_of_a_relative_folder_begins_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert tmp_path.resolve() / "out" == local_place(Path("../out"))


@pytest.mark.spark
@pytest.mark.parametrize("lines_max", LINES_OR_TABLES)
def test_run_is_judged_wherever_it_lies(session: Any, suites: list[Path], lines_max: int) -> None:
    found = check_runs(session, _runs(suites), CHECKERS, lines_max=lines_max)
    expected = check_in_process(golden().ops)
    assert {run.name: expected for run in _runs(suites)} == found


@exhaustive
@pytest.mark.spark
@pytest.mark.parametrize("lines_max", LINES_OR_TABLES)
def test_run_is_measured_wherever_it_lies_and_the_data_set_wherever_it_is_written(
    session: Any, suites: list[Path], tmp_path: Path, lines_max: int
) -> None:
    (tmp_path / "out" / "in").mkdir(parents=True)
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere" / "in")
    outs = [tmp_path / "out" / "in" / "..", tmp_path / "out" / "link" / "..", tmp_path / "100% #1 ?"]
    for out in outs:
        out.mkdir(exist_ok=True)
        data = write_data_set(session, find_folders(suites, lines_max), out)
        assert out / FOLDER == data
        runs = read_data_set(session, data)["runs"].select("run", "outcome").collect()
        assert {run.name: "valid" for run in _runs(suites)} == {row["run"]: row["outcome"] for row in runs}
