"""A summary says what plain Python counts in the same runs; what is broken is a row, and ends nothing."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.made.history import Maker, Shape
from checkers.measures.folders import find_folders
from checkers.measures.latency import buckets_of, quantile
from checkers.measures.run import facts_of
from checkers.measures.schema import SCHEMAS
from checkers.spark.aggregates import aggregates
from checkers.spark.data_set import read_data_set, write_data_set
from checkers.spark.measured import measures_in
from harness.cli.main import main
from harness.model import EXIT_CODES, OpType, Verdict
from harness.run.result import Status
from harness.run.store import Run
from tests.checkers.measures.histories import Timed, golden
from tests.checkers.measures.stored import LOST, result, store_suite
from tests.report.pages import Page, problems_of
from tests.tables.stored import all_ops

pytestmark = pytest.mark.spark

FIRST, SECOND = "2026-11-20T22:00:00+00:00", "2026-11-21T13:00:00+00:00"
LARGE = "kip101-2-kip101"


@dataclass(frozen=True, slots=True)
class Summed:
    """What was stored, the rows of the data set, and the aggregates."""

    folder: Path
    rows: dict[str, pd.DataFrame]
    frames: dict[str, pd.DataFrame]


def _slow(times_ms: list[float]) -> bytes:
    story = Timed("sim")
    now = 0.0
    for number, ms in enumerate(times_ms):
        story.sent(now, f"v{number}").ended(now + ms, f"v{number}", OpType.INFO if number % 7 == 6 else OpType.OK)
        now += ms
    return story.done(now).lines()


SLOW = {f"slow-{n}": _slow([1.5 * n * (k + 1) for k in range(20)]) for n in (1, 2)}


def _make(folder: Path) -> None:
    """Store a night of real runs, one of them large, and one of the simulator, of which much is broken."""
    mutant = replace(result("kip101-2", "kip101+fence_fetch=no", Verdict.INVALID, LOST), status=Status.MISMATCH)
    real = [result("kip101-1", "hw", Verdict.INVALID, LOST, LOST), result("kip101-2", "kip101"), mutant]
    histories = {real[0].run: golden().lines(), mutant.run: golden().lines()}
    store_suite(folder / "one", real, histories, started=FIRST)
    large = Run(path=folder / "one" / LARGE)
    Maker(Shape(sends=900, stretch=300, unanswered=0.05), seed=3).make(large.tables)
    names = ("hw", "kip101", "kip101-text", "kip279", "kip320")
    broken = [result("kip101-2", name) for name in names]
    virtual = [*(replace(result("kip101-1", "hw"), run=name) for name in SLOW), *broken]
    torn = {
        "kip101-2-hw": golden().lines()[:-4],
        "kip101-2-kip101": golden().lines().replace(b"invoke", b"inv\xffoke", 1),
        "kip101-2-kip101-text": b"",
        "stray": golden("sim").lines(),
    }
    store_suite(folder / "two", virtual, {**SLOW, **torn}, started=SECOND, host="sim")
    cut = Run(path=folder / "two" / "kip101-2-kip320")
    Maker(Shape(sends=50, stretch=50)).make(cut.tables)
    (cut.tables / "produces.parquet").write_bytes((cut.tables / "produces.parquet").read_bytes()[:200])
    store_suite(folder / "cut", virtual, SLOW, started=SECOND, host="sim")
    (folder / "cut" / "suite.json").write_bytes((folder / "cut" / "suite.json").read_bytes()[:-30])


@pytest.fixture(scope="module")
def summed(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Summed]:
    folder, out = tmp_path_factory.mktemp("a[1]{b}c d%20#é"), tmp_path_factory.mktemp("out")
    _make(folder)
    data = write_data_set(session, find_folders([folder]), out)
    rows = {name: pq.read_table(data / name).to_pandas() for name in SCHEMAS}
    yield Summed(folder, rows, aggregates(read_data_set(session, data)))
    shutil.rmtree(out)


def test_every_run_with_a_result_is_counted_once(summed: Summed) -> None:
    runs = summed.rows["runs"]
    outcomes = dict(zip(runs["suite"] + "/" + runs["run"], runs["outcome"], strict=True))
    assert {
        "one/kip101-1-hw": "invalid",
        f"one/{LARGE}": "valid",
        "one/kip101-2-kip101+fence_fetch=no": "invalid",
        "two/kip101-2-hw": "unreadable",
        "two/kip101-2-kip101": "unreadable",
        "two/kip101-2-kip101-text": "unreadable",
        "two/kip101-2-kip279": "unreadable",
        "two/kip101-2-kip320": "unreadable",
    } | {f"two/{name}": "valid" for name in SLOW} == outcomes
    assert len(runs) == len(outcomes)


def test_what_cannot_be_read_is_a_row_with_its_reason(summed: Summed) -> None:
    rows = summed.rows["unreadable"]
    found = {(row.suite, row.run): row.reason for row in rows.itertuples()}
    assert len(found) == len(rows)
    expected = {
        ("cut", None): "suite.json: JSONDecodeError",
        ("two", "kip101-2-hw"): "the last line is torn",
        ("two", "kip101-2-kip101"): "line 2: ",
        ("two", "kip101-2-kip101-text"): "history.jsonl: empty",
        ("two", "kip101-2-kip279"): "history.jsonl: No such file or directory",
        ("two", "kip101-2-kip320"): "produces.parquet",
        ("two", "stray"): "suite.json: no result of this run",
    }
    assert expected.keys() == found.keys()
    assert [] == [(key, found[key]) for key, part in expected.items() if part not in found[key]]
    totals = summed.frames["totals"].to_dict("records")[0]
    assert (10, 2, 2, 5, 7, 1) == tuple(
        totals[key] for key in ("runs", "suites", "nights", "unreadable", "unreadable_rows", "unreadable_suites")
    )


def test_large_run_has_the_facts_that_its_ops_have(summed: Summed) -> None:
    """What Spark adds up from the tables is what one pass over all ops finds."""
    ops = all_ops(summed.folder / "one" / LARGE / "tables")
    lines = "".join(op.to_json() + "\n" for op in ops).encode()
    facts = facts_of(measures_in(lines))
    (expected,) = (fact for fact in facts if fact["what"] == "run")
    (found,) = summed.rows["runs"].query(f"suite == 'one' and run == '{LARGE}'").to_dict("records")
    assert "kafka:3.9.1" == found["release"]
    assert 0 < found["info"]
    for key in ("ok", "fail", "info", "open", "lasted_s", "windows", "available", "unavailable_s", "window_s"):
        assert expected[key] == found[key], key
    buckets = summed.rows["latencies"].query(f"suite == 'one' and run == '{LARGE}'")
    assert {(f["outcome"], f["acks"], f["bucket"]): f["count"] for f in facts if f["what"] == "latency"} == {
        (row.outcome, row.acks, row.bucket): row.count for row in buckets.itertuples(index=False)
    }


def test_aggregates_are_what_plain_python_counts(summed: Summed) -> None:
    facts = [fact for content in SLOW.values() for fact in facts_of(measures_in(content))]
    runs = [fact for fact in facts if fact["what"] == "run"]
    (found,) = summed.frames["nights"].query("value == '2026-11-21'").to_dict("records")
    assert ("virtual", 7, 2, 5, 2, 0) == tuple(
        found[key] for key in ("clock", "runs", "valid", "unreadable", "status_as_expected", "anomalies")
    )
    for name, key in (("ok", "ok"), ("info", "info"), ("windows", "windows"), ("available", "available_windows")):
        assert sum(run[name] for run in runs) == found[key], name
    assert max(run["unavailable_s"] for run in runs) == found["unavailable_s"]
    # Of all latencies together, and not of the two runs' quantiles.
    took = [1.5 * n * (k + 1) * 1e6 for n in (1, 2) for k in range(20) if k % 7 != 6]
    counts = Counter(buckets_of(np.array(took, dtype=np.int64)).tolist())
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        exact = quantile(counts, share, int(max(took)))
        assert exact is not None
        assert exact / 1e6 == pytest.approx(found[f"{name}_ms"]), name


def test_anomalies_and_faults_are_counted_by_kind(summed: Summed) -> None:
    anomalies = summed.frames["anomalies"]
    assert [("lost", "hw", 2, 1, 6), ("lost", "kip101 mutants", 1, 1, 3)] == [
        tuple(row) for row in anomalies[["kind", "family", "anomalies", "runs", "offsets"]].itertuples(index=False)
    ]
    faults = summed.frames["faults"][["kind", "asked", "bit", "runs", "runs_bit"]]
    assert [("kill", 2, 2, 2, 2), ("restart", 2, 2, 2, 2), ("pause", 2, 0, 2, 0)] == [
        tuple(row) for row in faults.itertuples(index=False)
    ]


def test_availability_names_the_worst_run_and_its_faults(summed: Summed) -> None:
    (found,) = summed.frames["availability"].query("clock == 'real' and family == 'hw'").to_dict("records")
    assert (8, 3, 5.0, "one/kip101-1-hw", "kill") == tuple(
        found[key] for key in ("windows", "available_windows", "unavailable_s", "unavailable_in", "around")
    )


def test_command_sums_up_one_run_alone(
    session: Any,
    summed: Summed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("harness.suite.spark_here.with_spark", lambda work, *_, **__: work(session))
    run, out = summed.folder / "one" / "kip101-1-hw", tmp_path / "summary"
    assert EXIT_CODES["valid"] == main(["summary", str(run), "--json", "--out", str(out)])
    printed = json.loads(capsys.readouterr().out)
    (night,) = printed["tables"]["nights"]
    assert ("2026-11-20", "real", 1, 1, 2, 5.0) == tuple(
        night[key] for key in ("value", "clock", "runs", "invalid", "anomalies", "unavailable_s")
    )
    assert ["kip101-1-hw"] == pq.read_table(Path(printed["data"]) / "runs").column("run").to_pylist()
    assert [] == printed["tables"]["unreadable"]
    assert problems_of(Page(Path(printed["page"]).read_text(encoding="utf-8"))) == []
    assert ["data", "summary.html"] == sorted(path.name for path in out.iterdir())
