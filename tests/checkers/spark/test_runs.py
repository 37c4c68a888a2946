"""Spark finds the same anomalies in the golden histories, and its search for suspicious offsets misses none."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers import CHECKERS
from checkers.checker import check, partitions
from checkers.judge import check_in_process, judge
from checkers.rules.diverged import diverged
from checkers.rules.lost import lost
from checkers.spark.runs import check_runs
from checkers.spark.suspects import SUSPECTS, survey, suspicious_offsets
from harness.history.file import History, read_history
from harness.model import Anomaly, HistoryError, Kind, Op, OpType, PartOps, Source
from harness.run.spec import RunSpec
from harness.run.store import Run, create_suite, write_parquet
from tests.checkers.golden import RECORDS, STORIES, ops_of
from tests.checkers.plants.table import PLANTS
from tests.checkers.specs import random_spec, written_spec
from tests.checkers.story import Story

pytestmark = pytest.mark.spark

RUNS = {name: ops_of(name) for name in STORIES} | {name: plant.ops for name, plant in PLANTS.items()}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return _suite(tmp_path_factory.mktemp("results"), RUNS)


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all runs of the suite are merged for Spark."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def found(session: Any, suite: dict[str, Path], temporary: Path) -> dict[str, list[Anomaly]]:
    """What Spark finds in all runs of the suite at once, in one job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        return check_runs(session, [*suite.values()], CHECKERS)


def _suite(results: Path, runs: Mapping[str, Sequence[Op]]) -> dict[str, Path]:
    made = create_suite(results, "golden")
    return {name: _stored(made.create_run(name), ops) for name, ops in runs.items()}


def _stored(run: Run, ops: Sequence[Op]) -> Path:
    run.history.write_text("".join(op.to_json() + "\n" for op in ops), encoding="utf-8")
    return write_parquet(run)


def _without_spark(ops: Sequence[Op]) -> list[Anomaly]:
    return [
        anomaly for _, part in sorted(partitions(ops).items()) for anomaly in check(part, CHECKERS, frozenset())
    ]


def _crashes(ops: Sequence[Op]) -> list[Anomaly]:
    raise ZeroDivisionError(f"seen {len(ops)} ops")


def test_spark_finds_what_the_plain_loop_finds_in_hundreds_of_runs(found: dict[str, list[Anomaly]]) -> None:
    assert 200 <= len(found)
    assert {name: _without_spark(ops) for name, ops in sorted(RUNS.items())} == found


def test_merged_files_are_gone_and_the_runs_own_files_are_there(
    found: dict[str, list[Anomaly]], suite: dict[str, Path], temporary: Path
) -> None:
    assert found.keys() == suite.keys()
    assert all(path.exists() for path in suite.values())
    assert [] == list(temporary.iterdir())


@pytest.mark.parametrize(
    ("spec", "runs"),
    [
        (random_spec(), RUNS.keys()),
        (random_spec("local"), STORIES),
        (written_spec("none"), STORIES),
        (written_spec("lost m2"), STORIES),
    ],
    ids=["sim", "local", "none", "lost"],
)
def test_result_is_the_same_whether_spark_or_this_process_applied_the_rules(
    spec: RunSpec, runs: Collection[str], found: dict[str, list[Anomaly]]
) -> None:
    in_process = {name: judge(spec, RUNS[name]) for name in runs}
    assert in_process == {name: judge(spec, RUNS[name], anomalies=found[name]) for name in runs}
    assert 1 < len({result.status for result in in_process.values()})


@pytest.mark.parametrize("name", ["lost", "diverged"])
def test_search_finds_every_offset_that_the_rule_finds(session: Any, suite: dict[str, Path], name: str) -> None:
    searched = {run: set[int]() for run in RUNS} | _searched(session, [*suite.values()], name)
    rule = {"lost": lost, "diverged": diverged}[name]
    ruled: dict[str, set[int]] = {}
    for run, ops in RUNS.items():
        try:
            found = rule(PartOps(ops))
        except HistoryError:
            found = []  # a history with an op that cannot be read
        ruled[run] = {offset for each in found for first, end in each.ranges for offset in range(first, end)}
    assert any(ruled.values())
    assert {run for run in RUNS if not ruled[run] <= searched[run]} == set()
    assert not searched[f"{name}-ok"]


def _searched(session: Any, parquet_paths: Sequence[Path], name: str) -> dict[str, set[int]]:
    """Return the suspicious offsets of every run that has any."""
    ops = session.read.parquet(*map(str, parquet_paths))
    found: dict[str, set[int]] = {}
    for row in suspicious_offsets(ops, survey(ops).toArrow().to_pylist()).where(name).collect():
        found.setdefault(row.run, set()).add(row.offset)
    return found


def test_search_counts_of_a_log_what_follows_its_last_snapshot(session: Any, tmp_path: Path) -> None:
    values = ["x", "a"]
    stale, kept = Story({"m1": values}, "kip101"), Story({"m1": values}, "kip101")
    for story in (stale, kept):
        story.started("A", "B").elected("A", 0).leads("A", 0, 0).sends("m1").acked("m1", 0).healed()
    # B's first snapshot is not its final log: it agrees with A's in `stale` only, the final log in `kept` only.
    stale.log("A", [(0, values)]).log("B", [(0, values)]).log("B", [(0, ["x", "b"])]).read(*values).done()
    kept.log("A", [(0, values)]).log("B", [(0, ["x", "b"])]).log("B", [(0, values)]).read(*values).done()
    paths = [*_suite(tmp_path, {"stale": stale.ops, "kept": kept.ops}).values()]
    assert [{"stale": {1}}] * len(SUSPECTS) == [_searched(session, paths, name) for name in SUSPECTS]


def test_search_wants_an_acknowledged_record_in_every_log_and_every_read(session: Any, tmp_path: Path) -> None:
    def story(a: list[str], b: list[str], read: list[str]) -> Story:
        begun = Story({"m1": ["x", "y"]}, "kip101").started("A", "B").elected("A", 0).leads("A", 0, 0)
        begun.sends("m1").acked("m1", 0).healed()
        return begun.log("A", [(0, a)]).log("B", [(0, b)]).read(*read).done()

    runs = {
        "held": story(["x", "y"], ["x", "y"], ["x", "y"]),
        "not-in-a": story(["x"], ["x", "y"], ["x", "y"]),
        "not-in-b": story(["x", "y"], ["x"], ["x", "y"]),
        "not-read": story(["x", "y"], ["x", "y"], ["x"]),
        "another": story(["x", "z"], ["x", "z"], ["x", "z"]),
        "nowhere": story(["x"], ["x"], ["x"]),
    }
    paths = [*_suite(tmp_path, {name: story.ops for name, story in runs.items()}).values()]
    assert {name: {1} for name in runs if name != "held"} == _searched(session, paths, "lost")


def test_every_search_spares_a_checker_that_there_is() -> None:
    assert SUSPECTS.keys() <= CHECKERS.keys()


def test_search_spares_the_rule_where_nothing_is_suspicious(session: Any, suite: dict[str, Path]) -> None:
    blunt = {"lost": replace(CHECKERS["lost"], rule=_crashes)}
    found = check_runs(session, [suite["lost-ok"], suite["lost-bad"]], blunt)
    assert {"lost-ok": [], "lost-bad": [Kind.UNCHECKED]} == {
        run: [anomaly.kind for anomaly in anomalies] for run, anomalies in found.items()
    }


def test_spark_is_unchecked_when_a_rule_crashes(session: Any, suite: dict[str, Path]) -> None:
    broken = {"order": replace(CHECKERS["order"], rule=_crashes)}
    (found,) = check_runs(session, [suite["order-ok"]], broken)["order-ok"]
    count = len(RUNS["order-ok"])
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
        for op in RUNS["diverged-bad"]:
            history.record_line(op.source, op.process, op.type, op.f, op.value)
    found = check_runs(session, [write_parquet(run)], CHECKERS)["written"]
    assert [Kind.PERMITTED, Kind.DIVERGED] == [anomaly.kind for anomaly in found]


def _two_partitions() -> list[Op]:
    """Return the lost-bad history twice, interleaved: for partition t-0 and for u-7."""
    story = Story(RECORDS)
    for op in RUNS["lost-bad"][1:]:
        story.add(op.source, op.process, op.type, op.f, **op.value)
        if op.value.get("topic") and op.source not in (Source.RUNNER, Source.NEMESIS):
            story.add(op.source, op.process, OpType(op.type), op.f, **{**op.value, "topic": "u", "partition": 7})
    return story.ops


def test_what_cannot_be_read_in_one_run_touches_no_other_and_is_the_same_without_spark(
    session: Any, tmp_path: Path
) -> None:
    ops = [*RUNS["lost-bad"]]
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
    suites = {name: _suite(tmp_path / name, {"run": RUNS[name]})["run"] for name in ("lost-bad", "lost-ok")}
    found = check_runs(session, [*suites.values()], CHECKERS)
    assert {str(path.parent): _without_spark(RUNS[name]) for name, path in suites.items()} == found


def test_line_that_is_no_op_makes_its_own_run_unknown(session: Any, tmp_path: Path) -> None:
    paths = _suite(tmp_path, {"broken": RUNS["lost-ok"], "whole": RUNS["lost-ok"]})
    run = Run(path=paths["broken"].parent)
    lines = run.history.read_text(encoding="utf-8").splitlines()
    run.history.write_text("\n".join([*lines[:5], lines[5][:-7], *lines[6:], ""]), encoding="utf-8")
    found = check_runs(session, [write_parquet(run), paths["whole"]], CHECKERS)
    assert [] == found["whole"]
    assert {Kind.UNCHECKED} == {anomaly.kind for anomaly in found["broken"]}
    assert check_in_process(read_history(run.history)) == found["broken"]
