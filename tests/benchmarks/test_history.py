"""The benchmark of histories records a run that is like a real one, and measures the follower that it says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.history import Measured, Work, _table, work
from benchmarks.made.ops import NODES, RECORDS, run_of
from checkers.judge import check_in_process
from harness.events import Batch, Produce, Read
from harness.history.file import History, read_history
from harness.model import FencepostError, Kind, OpType, PartOps
from harness.tables import following
from harness.tables.manifest import Manifest

ALONE = Measured(ops=1_000, work_s=10.0, work_cpu_s=8.0)


def _work(folder: Path, *, followed: bool, rate: int = 0) -> Work:
    return Work(ops=2_000, partitions=2, rate=rate, followed=followed, folder=str(folder))


@pytest.mark.parametrize("partitions", [1, 3])
def test_run_has_about_as_many_ops_as_were_asked_for_and_every_record_everywhere(partitions: int) -> None:
    ops = [*run_of(2_000, partitions)]
    assert 1_900 < len(ops) < 2_050
    events = [event for _, _, event in ops]
    sent = Counter((each.partition, each.value) for each in events if isinstance(each, Produce))
    assert {2} == {*sent.values()}
    kept = Counter(
        (each.partition, value) for each in events if isinstance(each, Batch) for _, _, value in each.records
    )
    shown = Counter(
        (each.partition, value) for each in events if isinstance(each, Read) for _, value in each.records or ()
    )
    assert {len(NODES)} == {*kept.values()}
    assert {*sent} == {*kept} == {*shown}
    assert 0 == len(sent) % RECORDS
    assert all(type_ in event.TYPES for _, type_, event in ops)


def test_logs_reads_and_acknowledgements_agree_and_only_the_set_up_and_leaders_are_missing(tmp_path: Path) -> None:
    with History(tmp_path / "history.jsonl") as history:
        for process, type_, event in run_of(500, 1):
            history.record(process, type_, event)
    found = check_in_process(PartOps(read_history(history.path)))
    assert {Kind.UNCHECKED, Kind.FALSE_ACK} == {each.kind for each in found}


def test_alone_has_no_tables(tmp_path: Path) -> None:
    found = work(_work(tmp_path, followed=False, rate=1_000_000))
    assert (0.0, 0.0) == (found.after_s, found.peak_mb)
    assert found.ops == (tmp_path / "history.jsonl").read_bytes().count(b"\n")
    assert not (tmp_path / "tables").exists()


@pytest.mark.slow
def test_followed_has_tables_of_all_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(following, "LINES_MAX", 1_000)
    (tmp_path / "run").mkdir()
    found = work(_work(tmp_path / "run", followed=True))
    manifest = Manifest.read(tmp_path / "run" / "tables")
    assert (found.ops, {}) == (manifest.ops, manifest.irregular)
    assert min(found.after_s, found.follower_cpu_s, found.peak_mb, found.lines_mb, found.tables_mb) > 0


def test_history_that_was_not_followed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FencepostError, match="tables"):
        work(_work(tmp_path, followed=True))  # it is too small


@pytest.mark.parametrize(("seconds", "word"), [(10.4, "reached"), (10.6, "missed")])
def test_table_says_whether_a_goal_is_reached(seconds: float, word: str) -> None:
    followed = Measured(ops=1_000, work_s=seconds, work_cpu_s=8.0, after_s=3.0, follower_cpu_s=0.01, peak_mb=300.0)
    table = _table([(ALONE, followed)])
    assert [word, "reached", "reached", "reached", ""] == [*table.columns[4].cells]
    assert [f"{seconds / 10:.3g}", "1", "3", "300", "10"] == [*table.columns[1].cells]


def test_event_types_are_those_of_a_history() -> None:
    assert {OpType.INVOKE, OpType.OK, OpType.INFO} == {type_ for _, type_, _ in run_of(100, 1)}
