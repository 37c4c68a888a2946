"""What only Spark can read is judged as what this process reads, and what is not whole is unknown alone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.made.history import Maker, Shape
from checkers import CHECKERS
from checkers.judge import check_in_process
from checkers.spark import runs as module
from checkers.spark.runs import check_runs
from checkers.spark.storage import SparkStorage
from harness.model import Kind, UsageError
from harness.run.store import Run, create_suite, write_anomalies
from harness.tables.manifest import MANIFEST, VERSION
from harness.tables.writer import make_tables
from tests.checkers.golden import ops_of
from tests.checkers.spark.test_runs import BROKEN
from tests.kept import exhaustive

pytestmark = pytest.mark.spark

# What is wrong with a run -> a part of what is said of it. Only Spark's words of a cut file are Spark's own.
SAYS = {
    "cut": "records.parquet: ",
    "missing": "records.parquet: no such file; expected a table of this run",
    "another-column": "column offset is string; expected bigint",
    "fewer-rows": "rows; expected",
    "another-version": "that its manifest is about",
    "overwritten": "could not be read",
    "manifest": f"manifest.json: version 99; expected {VERSION}",
    "no-manifest": "manifest.json: no such file; expected the manifest",
    "another-history": "tables: made from a history of",
    "not-there": "manifest.json: no such file",
}


@dataclass(frozen=True, slots=True)
class Results:
    """A folder that Spark also knows by a name that is no local path."""

    folder: Path
    base: str

    def uri(self, name: str) -> str:
        """Return the name of a folder in it."""
        return f"{self.base}/{name}"


MOUNTS = itertools.count()


@pytest.fixture
def results(session: Any, tmp_path: Path) -> Results:
    folder = tmp_path / "results"
    folder.mkdir()
    # Hadoop keeps a table of mounts as long as Java lives.
    mount = f"mount{next(MOUNTS)}"
    session.conf.set(f"fs.viewfs.mounttable.{mount}.link./results", folder.as_uri())
    return Results(folder, f"viewfs://{mount}/results")


def _large(folder: Path) -> Run:
    run = Run(path=folder)
    Maker(Shape(sends=300, stretch=100)).make(run.tables)
    return run


@exhaustive
def test_tables_elsewhere_that_are_not_whole_make_their_own_run_unknown(session: Any, results: Results) -> None:
    for name in SAYS.keys() - {"not-there", "another-history"} | {"sound"}:
        run = _large(results.folder / name)
        if name in BROKEN:
            BROKEN[name][0](run.tables / "records.parquet")
    manifest = results.folder / "manifest" / "tables" / MANIFEST
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(f'"version": {VERSION}', '"version": 99'))
    (results.folder / "no-manifest" / "tables" / MANIFEST).unlink()
    run = Run(path=results.folder / "another-history")
    run.path.mkdir()
    run.history.write_text("".join(op.to_json() + "\n" for op in ops_of("lost-bad")), encoding="utf-8")
    make_tables(run.history)
    run.history.write_bytes(run.history.read_bytes()[:-7])
    found = check_runs(session, [results.uri(name) for name in (*SAYS, "sound")], CHECKERS, lines_max=100)
    assert [] == found["sound"]
    for name, text in SAYS.items():
        assert [Kind.UNCHECKED] == [each.kind for each in found[name]], name
        assert text in found[name][0].sentence
        assert "\n" not in found[name][0].sentence


def test_runs_elsewhere_are_found_and_judged_by_their_lines_or_tables(session: Any, results: Results) -> None:
    suite = create_suite(results.folder, "a suite")
    for name in ("lost-bad", "of=one[1]"):
        run = suite.create_run(name)
        run.history.write_text("".join(op.to_json() + "\n" for op in ops_of("lost-bad")), encoding="utf-8")
    make_tables(suite.run("of=one[1]").history)
    suite.create_run("empty").history.touch()
    suite.create_run("nothing")
    write_anomalies(suite.run("lost-bad"), [])
    told = SparkStorage(session).find([results.uri("a suite"), results.uri("a suite/lost*")])
    uris = [*told]
    assert [None, "[]\n", None] == [*told.values()]
    names = ["empty", "lost-bad", "of=one[1]"]
    assert [results.uri(f"a suite/{name}") for name in names] == uris
    size = suite.run("lost-bad").history.stat().st_size
    expected = check_in_process(ops_of("lost-bad"))
    for lines_max in (size, 0):
        found = check_runs(session, uris if lines_max else uris[2:], CHECKERS, lines_max=lines_max)
        assert expected == found["of=one[1]"]
    found = check_runs(session, [*uris, suite.run("lost-bad").path], CHECKERS)
    # Two runs of one name: both by their paths.
    assert expected == found[uris[1]] == found[str(suite.run("lost-bad").path)]
    assert check_in_process([]) == found[uris[0]]


@exhaustive
def test_folder_elsewhere_that_spark_cannot_list_is_named(session: Any, results: Results) -> None:
    for uri, said in ((results.uri("none"), "PATH_NOT_FOUND"), ("nosuch://x/y", "No FileSystem for scheme")):
        with pytest.raises(
            UsageError, match=f"^{uri}: .*; expected a folder of runs that Spark can list"
        ) as caught:
            SparkStorage(session).find([uri])
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


@exhaustive
def test_history_that_spark_cannot_read_makes_its_own_run_unknown(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = create_suite(tmp_path, "suite")
    for name in ("gone", "whole"):
        run = suite.create_run(name)
        run.history.write_text("".join(op.to_json() + "\n" for op in ops_of("lost-bad")), encoding="utf-8")
    look = module.look

    def looked(*arguments: Any) -> Any:
        found = look(*arguments)
        suite.run("gone").history.rename(tmp_path / "elsewhere")
        (suite.run("gone").history).mkdir()
        return found

    monkeypatch.setattr(module, "look", looked)
    found = check_runs(session, [suite.run(name).path for name in ("gone", "whole")], CHECKERS)
    assert check_in_process(ops_of("lost-bad")) == found["whole"]
    assert [Kind.UNCHECKED] == [each.kind for each in found["gone"]]
    assert "Spark did not read" in found["gone"][0].sentence
