"""A large run's result and report are those of its whole history, and take memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from benchmarks.made.history import Maker, Shape
from checkers.facts.activity import activity_of
from checkers.facts.unread import readable, unread
from checkers.judge import check_in_process
from checkers.verdict import found_text, records_of
from harness.history.abridged import AbridgedRun
from harness.model import Anomaly, Kind, Op, PartOps, Verdict
from harness.report.reading import Reading
from harness.report.replicas import Replica, merged, replayed, replicas_of
from harness.report.run_view import view_of
from harness.run.result import Status
from harness.run.store import Run
from harness.suite import abridged as module
from harness.suite import abridged_ops, judged
from harness.suite.abridged import read_abridged
from harness.suite.judged import judge_run
from harness.tables.manifest import FOLDER
from harness.tables.writer import make_tables
from tests.checkers.golden import ops_of
from tests.checkers.plants.histories import HISTORIES
from tests.checkers.specs import random_spec
from tests.kept import exhaustive
from tests.little_memory import printed_with_little_memory
from tests.report.samples import sample_result

# One plant of nine has every sort of op.
# What is missing inside a batch shows by its records, of which an abridged run reads those alone that it draws.
WITHIN_A_BATCH = ("record-missing-", "batch-that-claims-too-many")


@cache
def comparable() -> Sequence[Sequence[Op]]:
    """Return the histories of which an abridged run shows all that the whole one shows."""
    named = [(name, HISTORIES[name]) for name in [*HISTORIES][::9] if not name.startswith(WITHIN_A_BATCH)]
    return [ops for _, ops in named if not unread(PartOps(ops)) and len({op.index for op in ops}) == len(ops)]


def stored(ops: Sequence[Op], folder: Path) -> Run:
    """Store a history with its tables."""
    folder.mkdir(exist_ok=True)
    (folder / "history.jsonl").write_text("".join(op.to_json() + "\n" for op in ops), encoding="utf-8")
    make_tables(folder / "history.jsonl")
    return Run(path=folder)


def made(folder: Path, sends: int) -> Run:
    """Make the tables of a run of that many produces."""
    Maker(Shape(sends=sends, stretch=50_000)).make(folder / FOLDER)
    return Run(path=folder)


# --- as the whole history has it -------------------------------------------------------------------------------
@pytest.mark.slow
@exhaustive
def test_result_is_that_of_the_whole_history(tmp_path: Path) -> None:
    named = 0
    for number, ops in enumerate(comparable()):
        found = check_in_process(PartOps(ops))
        run = read_abridged(stored(ops, tmp_path / str(number)), found)
        assert activity_of(PartOps(ops)) == activity_of(run)
        text = found_text(found, records_of(PartOps(ops)))
        assert text == found_text(found, records_of(run))
        named += "m" in text
        assert (len(ops), len(ops)) == (run.total, len(run) + sum(run.left_out.values()))
        proof = {index for each in found for index in each.proof[:60]}
        assert proof <= {op.index for op in run}
    assert named > 5


def test_logs_and_lost_tails_are_those_of_the_whole_history(tmp_path: Path) -> None:
    cuts = 0
    for number, ops in enumerate(comparable()[::2]):
        run = read_abridged(stored(ops, tmp_path / str(number)), ())
        whole, part = (_drawn(each) for each in (PartOps(ops), run))
        assert whole == part
        cuts += any(lost for _, _, _, lost in whole)
    assert cuts > 3


def _drawn(ops: Sequence[Op]) -> list[tuple[object, ...]]:
    """Return what is drawn of each replica, but the names of records."""
    reading = Reading(ops=ops)
    place = reading.partition
    return [_told(replica) for replica in replicas_of(reading, *place, replayed(reading, *place).cuts)]


def _told(replica: Replica) -> tuple[object, ...]:
    pieces = [(piece.first, piece.end, piece.epoch) for piece in _nameless(replica)]
    cuts = [(cut.op.index, cut.to, cut.end, cut.reason) for cut in replica.cuts]
    return replica.node, (replica.start, replica.end, replica.high_watermark), pieces, cuts


def _nameless(replica: Replica) -> Sequence[object]:
    return merged(replace(piece, name="") for piece in replica.pieces)


def test_readable_ops_of_an_abridged_run_are_one(tmp_path: Path) -> None:
    run = read_abridged(stored(ops_of("lost-bad"), tmp_path), ())
    kept = readable(run)
    assert isinstance(kept, AbridgedRun)
    assert (run.total, activity_of(run)) == (kept.total, activity_of(kept))


def test_run_with_lines_that_cannot_be_read_is_unknown_as_a_small_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = ops_of("lost-bad")
    place = next(op.index for op in ops if op.f == "state")
    for number, broken in enumerate([replace(ops[place], f="whatever"), replace(ops[place], value={"topic": 7})]):
        ops[place] = broken
        assert unread(PartOps(ops))
        run, found = stored(ops, tmp_path / str(number)), check_in_process(PartOps(ops))
        monkeypatch.setattr(judged, "LINES_MAX", 10**9)
        small, _ = judge_run(random_spec(), run, found)
        monkeypatch.setattr(judged, "LINES_MAX", 0)
        large, _ = judge_run(random_spec(), run, found)
        assert small == large
        assert Verdict.UNKNOWN is large.verdict


def test_large_run_of_which_spark_says_nothing_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "IN_PROCESS_MAX", 100)
    result, _ = judge_run(random_spec(), stored(ops_of("lost-ok"), tmp_path))
    assert Status.UNKNOWN is result.status
    assert "expected at most 100 without Spark, which judges larger runs from their tables" in result.reason


# --- what is left out ------------------------------------------------------------------------------------------
def test_of_the_bulk_there_is_what_a_proof_names_and_the_page_says_so(tmp_path: Path) -> None:
    run = made(tmp_path, 3_000)
    lost = Anomaly(kind=Kind.LOST, topic="made", partition=0, ranges=((9, 10),), proof=(20, 6_010, 10_000_000))
    ops = read_abridged(run, [lost])
    assert {20, 6_010} <= {op.index for op in ops}
    assert len(ops) < 60
    view = view_of(sample_result("kip101-1", "hw", anomalies=(lost,)), "key", ops)
    assert view.abridged.startswith(
        f"This run is abridged: of its {ops.total:,} history lines, {len(ops)} are here"
    )
    assert ops.total == view.total
    assert "produce" in view.left_out
    (finding,) = view.findings
    assert ("", "10000000") == (finding.unshown, finding.missing)
    assert [20, 6_010] == [line.index for line in finding.lines]


def test_proof_that_is_not_read_is_not_called_missing(tmp_path: Path) -> None:
    run = made(tmp_path, 1_000)
    lost = Anomaly(kind=Kind.LOST, topic="made", partition=0, ranges=((9, 10),), proof=tuple(range(100, 200)))
    view = view_of(sample_result("kip101-1", "hw", anomalies=(lost,)), "key", read_abridged(run, [lost]))
    assert (60, "") == (len(view.findings[0].lines), view.findings[0].missing)
    assert view.findings[0].unshown.endswith("198, 199")


def test_names_with_too_many_records_name_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORDS_MAX", 3)
    ops = ops_of("lost-bad")
    records = records_of(PartOps(ops))
    found = records_of(read_abridged(stored(ops, tmp_path), ()))
    assert max(map(len, records.values())) >= 2
    assert sum(map(len, found.values())) <= 3
    assert {name: acked for name, acked in found.items() if acked}.items() <= records.items()


def test_beginning_of_each_kind_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abridged_ops, "KIND_MAX", 1)
    ops = ops_of("lost-bad")
    run = read_abridged(stored(ops, tmp_path), ())
    elections = [op for op in ops if op.f == "state"]
    assert len(elections) > 1
    assert elections[:1] == [op for op in run if op.f == "state"]
    assert activity_of(PartOps(ops)) == activity_of(run)


# --- memory ----------------------------------------------------------------------------------------------------
# Whole, the larger history would need 2.8 KB for each of its 1.3 million ops.
JUDGED: str = """
from pathlib import Path
from checkers.judge import judge
from harness.report.page import build_report
from harness.run.store import Run
from harness.suite.abridged import read_abridged
from harness.suite.judged import judge_run
from tests.checkers.specs import random_spec
from tests.little_memory import peak_bytes
from tests.report.samples import suite_of
import os
folder = Path(FOLDER)
ops = read_abridged(Run(path=folder), ())
result = judge(random_spec(), ops, anomalies=())
page = build_report(suite_of([result]), {result.run: ops}, folder / "report.html")
print(ops.total, result.activity.acked, page.stat().st_size, peak_bytes(os.getpid()))
"""


@exhaustive
@pytest.mark.slow
def test_memory_and_page_do_not_grow_with_the_history(tmp_path: Path) -> None:
    small, large = (
        [
            *map(
                int,
                printed_with_little_memory(
                    f"FOLDER = {str(made(tmp_path / str(sends), sends).path)!r}\n{JUDGED}"
                ).split(),
            )
        ]
        for sends in (30_000, 420_000)
    )
    assert small[0] * 13 < large[0]
    assert small[1] * 13 < large[1]
    assert large[2] < 2 * small[2] < 1_000_000
    assert large[3] < small[3] + 150 * 2**20
