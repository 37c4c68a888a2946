"""Spark finds the same anomalies as this process in the golden histories; nothing in one run touches another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.made.history import Maker, Shape
from checkers import CHECKERS
from checkers.checker import check, of_run, partitions
from checkers.judge import check_in_process, judge
from checkers.spark.runs import check_runs
from harness.history.file import History, read_history
from harness.model import Anomaly, Kind, Op, OpType, Source
from harness.run.spec import RunSpec
from harness.run.store import Run, create_suite
from harness.tables.manifest import VERSION
from tests.checkers.golden import RECORDS, STORIES
from tests.checkers.plants.histories import HISTORIES
from tests.checkers.specs import random_spec, written_spec
from tests.checkers.story import Story
from tests.kept import exhaustive, keep

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return _suite(tmp_path_factory.mktemp("results"), HISTORIES)


@pytest.fixture(scope="module")
def found(session: Any, suite: dict[str, Path]) -> dict[str, list[Anomaly]]:
    """What Spark finds in all runs of the suite at once, in one job."""
    return check_runs(session, [*suite.values()], CHECKERS)


def _suite(results: Path, runs: Mapping[str, Sequence[Op]]) -> dict[str, Path]:
    made = create_suite(results, "golden")
    return {name: _stored(made.create_run(name), ops) for name, ops in runs.items()}


def _stored(run: Run, ops: Sequence[Op]) -> Path:
    run.history.write_text("".join(op.to_json() + "\n" for op in ops), encoding="utf-8")
    return run.path


def _without_spark(ops: Sequence[Op]) -> list[Anomaly]:
    return of_run(check(part, CHECKERS) for _, part in sorted(partitions(ops).items()))


def _crashes(ops: Sequence[Op]) -> list[Anomaly]:
    raise ZeroDivisionError(f"seen {len(ops)} ops")


@exhaustive
def test_spark_finds_what_the_plain_loop_finds_in_hundreds_of_runs(found: dict[str, list[Anomaly]]) -> None:
    assert 200 <= len(found)
    assert {name: _without_spark(ops) for name, ops in sorted(HISTORIES.items())} == found


@pytest.mark.parametrize(
    ("spec", "runs"),
    keep(
        [
            pytest.param(random_spec(), HISTORIES.keys(), id="sim"),
            pytest.param(random_spec("local"), STORIES, id="local"),
            pytest.param(written_spec("none"), STORIES, id="none"),
            pytest.param(written_spec("lost m2"), STORIES, id="lost"),
        ],
        "sim",
        "lost",
    ),
)
def test_result_is_the_same_whether_spark_or_this_process_applied_the_rules(
    spec: RunSpec, runs: Collection[str], found: dict[str, list[Anomaly]]
) -> None:
    in_process = {name: judge(spec, HISTORIES[name]) for name in runs}
    assert in_process == {name: judge(spec, HISTORIES[name], anomalies=found[name]) for name in runs}
    assert 1 < len({result.status for result in in_process.values()})


def test_spark_is_unchecked_when_a_rule_crashes(session: Any, suite: dict[str, Path]) -> None:
    broken = {"order": replace(CHECKERS["order"], rule=_crashes)}
    (found,) = check_runs(session, [suite["order-ok"]], broken)["order-ok"]
    count = len(HISTORIES["order-ok"])
    assert f"Checker order could not judge t-0: ZeroDivisionError: seen {count} ops." == found.sentence


def test_spark_parts_a_run_by_partition_and_keeps_the_global_ops(session: Any, tmp_path: Path) -> None:
    ops = _two_partitions()
    found = check_runs(session, [*_suite(tmp_path, {"two": ops}).values()], CHECKERS)["two"]
    assert _without_spark(ops) == found
    assert {("t", 0, Kind.LOST), ("u", 7, Kind.LOST)} == {
        (a.topic, a.partition, a.kind) for a in found if a.kind is Kind.LOST
    }


def test_spark_checks_runs_that_never_came_to_a_partition(session: Any, tmp_path: Path) -> None:
    runs: dict[str, Sequence[Op]] = {"begun": Story(RECORDS).fault("kill", "A").ops, "empty": []}
    found = check_runs(session, [*_suite(tmp_path, runs).values()], CHECKERS)
    assert {name: _without_spark(ops) for name, ops in runs.items()} == found
    assert all(Kind.UNCHECKED in {anomaly.kind for anomaly in found[name]} for name in runs)


def test_spark_gives_nothing_when_there_is_no_run(session: Any) -> None:
    assert {} == check_runs(session, [], CHECKERS)


def test_spark_reads_what_the_history_writer_wrote(session: Any, tmp_path: Path) -> None:
    run = create_suite(tmp_path, "one").create_run("written")
    with History(run.history) as history:
        for op in HISTORIES["diverged-bad"]:
            history.record_line(op.source, op.process, op.type, op.f, op.value)
    found = check_runs(session, [run.path], CHECKERS)["written"]
    assert [Kind.PERMITTED, Kind.DIVERGED] == [anomaly.kind for anomaly in found]


def _two_partitions() -> list[Op]:
    """Return the lost-bad history twice, interleaved: for partition t-0 and for u-7."""
    story = Story(RECORDS)
    for op in HISTORIES["lost-bad"][1:]:
        story.add(op.source, op.process, op.type, op.f, **op.value)
        if op.value.get("topic") and op.source not in (Source.RUNNER, Source.NEMESIS):
            story.add(op.source, op.process, OpType(op.type), op.f, **{**op.value, "topic": "u", "partition": 7})
    return story.ops


def test_what_cannot_be_read_in_one_run_touches_no_other_and_is_the_same_without_spark(
    session: Any, tmp_path: Path
) -> None:
    ops = [*HISTORIES["lost-bad"]]
    strange = [replace(op, value={**op.value, "partition": "0"}) if op.f == "append" else op for op in ops]
    unset = [replace(op, value={**op.value, "topic": 7}) if op.f == "setup" else op for op in ops]
    unknown = [replace(op, f="shrunk") if op.f == "high-watermark" else op for op in ops]
    gap = [op for op in ops if op.index != 9]
    again = [*ops[:9], ops[8], *ops[9:]]
    late = [replace(op, time_ns=0) if op.index == 20 else op for op in ops]
    runs = {"strange": strange, "unset": unset, "unknown": unknown, "gap": gap, "again": again, "late": late}
    found = check_runs(session, [*_suite(tmp_path, {**runs, "whole": ops}).values()], CHECKERS)
    assert {name: check_in_process(run) for name, run in runs.items()} == {name: found[name] for name in runs}
    assert all(Kind.UNCHECKED in {anomaly.kind for anomaly in found[name]} for name in runs)
    assert [Kind.LOST, Kind.NOT_REPLICATED] == [anomaly.kind for anomaly in found["whole"]]


def test_two_runs_of_one_name_in_two_suites_are_two_runs(session: Any, tmp_path: Path) -> None:
    suites = {name: _suite(tmp_path / name, {"run": HISTORIES[name]})["run"] for name in ("lost-bad", "lost-ok")}
    found = check_runs(session, [*suites.values()], CHECKERS)
    assert {str(path): _without_spark(HISTORIES[name]) for name, path in suites.items()} == found


def test_line_that_is_no_op_makes_its_own_run_unknown(session: Any, tmp_path: Path) -> None:
    paths = _suite(tmp_path, {"broken": HISTORIES["lost-ok"], "whole": HISTORIES["lost-ok"]})
    run = Run(path=paths["broken"])
    lines = run.history.read_text(encoding="utf-8").splitlines()
    run.history.write_text("\n".join([*lines[:5], lines[5][:-7], *lines[6:], ""]), encoding="utf-8")
    found = check_runs(session, [run.path, paths["whole"]], CHECKERS)
    assert [] == found["whole"]
    assert {Kind.UNCHECKED} == {anomaly.kind for anomaly in found["broken"]}
    assert check_in_process(read_history(run.history)) == found["broken"]


# --- runs that cannot be read ----------------------------------------------------------------------------------
def _large(folder: Path, name: str) -> Run:
    """Store a large run: one that is judged from its tables, since it has no lines."""
    run = Run(path=folder / name)
    Maker(Shape(sends=300, stretch=100)).make(run.tables)
    return run


def _with_other_column(path: Path) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index("offset")
    text = table.column("offset").cast(pa.string())
    pq.write_table(table.set_column(place, "offset", text), path)


def _with_other_version(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"fencepost.tables": b"99"}), path)


def _overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200:1200] = bytes(1000)
    path.write_bytes(content)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-100]), "records.parquet"),
    "missing": (lambda path: path.unlink(), "records.parquet"),
    "another-column": (_with_other_column, "column offset is string; expected int64"),
    "another-version": (_with_other_version, f"version 99 of the tables; expected {VERSION}"),
    "fewer-rows": (
        lambda path: pq.write_table(pq.read_table(path).slice(1), path),
        "rows; expected",
    ),
    "overwritten": (_overwritten, "could not be read"),
}


def test_tables_that_cannot_be_read_make_their_own_run_unknown(session: Any, tmp_path: Path) -> None:
    runs = {name: _large(tmp_path, name) for name in (*BROKEN, "sound")}
    for name, (damage, _) in BROKEN.items():
        damage(runs[name].tables / "records.parquet")
    found = check_runs(session, [run.path for run in runs.values()], CHECKERS)
    assert [] == found["sound"]
    assert {name: [Kind.UNCHECKED] for name in BROKEN} == {
        name: [each.kind for each in found[name]] for name in BROKEN
    }
    for name, (_, text) in BROKEN.items():
        assert text in found[name][0].sentence, name
        assert "\n" not in found[name][0].sentence
    assert "records.parquet: row group 0: " in found["overwritten"][0].sentence
    assert "; expected a table of this run." in found["overwritten"][0].sentence


def test_tables_that_cannot_be_read_are_made_again_from_the_lines(session: Any, tmp_path: Path) -> None:
    path = _suite(tmp_path, {"run": HISTORIES["lost-bad"]})["run"]
    run = Run(path=path)
    expected = check_in_process(HISTORIES["lost-bad"])
    assert {"run": expected} == check_runs(session, [path], CHECKERS, lines_max=0)
    (run.tables / "records.parquet").write_bytes(b"")
    assert {"run": expected} == check_runs(session, [path], CHECKERS, lines_max=0)
    # A killed run has a torn last line; its tables are those of the lines before.
    run.history.write_bytes(run.history.read_bytes()[:-7])
    found = check_runs(session, [path], CHECKERS, lines_max=0)["run"]
    assert check_in_process(read_history(run.history)) == found != expected


def test_run_without_lines_and_tables_is_unknown(session: Any, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (found,) = check_runs(session, [tmp_path / "run"], CHECKERS)["run"]
    assert found.kind is Kind.UNCHECKED
    assert "manifest.json" in found.sentence


def test_folder_with_letters_of_a_pattern_is_that_folder(session: Any, tmp_path: Path) -> None:
    paths = _suite(tmp_path / "a[1]{b}*?=c d%20#é", {"run=[1]": HISTORIES["lost-bad"]})
    assert {"run=[1]": check_in_process(HISTORIES["lost-bad"])} == check_runs(session, [*paths.values()], CHECKERS)
