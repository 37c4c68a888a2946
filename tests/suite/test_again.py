"""What is found in a stored run now is compared with what was found before, anomaly by anomaly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.judge import with_failure
from harness.model import Anomaly, Kind, Verdict
from harness.run.result import RunResult, Status
from harness.run.store import Run
from harness.suite.again import Again, Change, compared, differences
from harness.suite.stored import StoredRun
from tests.checkers.golden import ops_of
from tests.report.samples import sample_result

LOST = Anomaly(
    kind=Kind.LOST, topic="t", partition=0, ranges=((1, 2),), nodes=("A", "B"), epoch=3, sentence="at 0.1 s"
)
STUCK = replace(LOST, kind=Kind.STUCK, ranges=(), epoch=None, nodes=("A",))
UNREAD = replace(LOST, kind=Kind.UNCHECKED, ranges=(), epoch=None, nodes=(), checker="whole")
FAILED = replace(UNREAD, checker="", sentence="The run failed: the disk is full")


def stored_as(folder: Path, *anomalies: Anomaly, **more: object) -> StoredRun:
    """Return a stored run of a suite that expected nothing, with a history of no violation below the folder."""
    verdict = Verdict.merge(each.verdict for each in anomalies)
    status = {Verdict.VALID: Status.AS_EXPECTED, Verdict.UNKNOWN: Status.UNKNOWN}.get(verdict, Status.MISMATCH)
    given = {"expected": "none", "found": "x", "anomalies": anomalies, "verdict": verdict, "status": status}
    result: RunResult = sample_result("kip101-1", "hw", **{**given, **more})  # type: ignore[arg-type]
    return StoredRun(run=run_in(folder), result=result, anomalies=result.anomalies)


def run_in(folder: Path, name: str = "lost-ok") -> Run:
    lines = "".join(op.to_json() + "\n" for op in ops_of(name))
    (folder / "history.jsonl").write_text(lines, encoding="utf-8")
    return Run(path=folder)


def told(again: Again) -> tuple[Change, Sequence[Anomaly], Sequence[Anomaly]]:
    return again.change, again.appeared, again.gone


@pytest.mark.parametrize(("other", "same"), [
    ({"sentence": "at 0.2 s", "proof": (7,), "checker": "other"}, True),
    ({"nodes": ("B", "A")}, True),
    ({"kind": Kind.PERMITTED}, False),
    ({"ranges": ((1, 3),)}, False),
    ({"nodes": ("A",)}, False),
    ({"epoch": 4}, False),
    ({"partition": 1}, False),
])  # fmt: skip
def test_kind_offsets_nodes_and_epoch_decide_whether_an_anomaly_is_the_same(
    other: dict[str, object], same: bool
) -> None:
    found = replace(LOST, **other)  # type: ignore[arg-type]
    assert (((), ()) if same else ((found,), (LOST,))) == differences([LOST], [found])


def test_anomaly_that_is_there_twice_now_appeared_once() -> None:
    assert ((LOST,), ()) == differences([LOST], [LOST, LOST])
    assert ((), (LOST,)) == differences([LOST, STUCK, LOST], [STUCK, LOST])


@pytest.mark.parametrize(("before", "now", "change"), [
    ([], [], Change.SAME),
    ([LOST], [replace(LOST, sentence="other")], Change.SAME),
    ([], [LOST], Change.DIFFERENT),
    ([LOST], [], Change.DIFFERENT),
    ([LOST], [LOST, STUCK], Change.DIFFERENT),
    ([], [UNREAD], Change.UNKNOWN),
    ([LOST], [UNREAD], Change.UNKNOWN),
    ([UNREAD], [UNREAD], Change.SAME),
    ([UNREAD], [], Change.DIFFERENT),
    # Nothing masks a violation.
    ([], [UNREAD, LOST], Change.DIFFERENT),
])  # fmt: skip
def test_verdict_is_compared_with_the_stored_one(
    tmp_path: Path, before: list[Anomaly], now: list[Anomaly], change: Change
) -> None:
    again = compared(stored_as(tmp_path, *before), now)
    appeared, gone = differences(before, now)
    assert (change, appeared, gone) == told(again)


def test_stored_status_that_does_not_follow_from_its_anomalies_is_different(tmp_path: Path) -> None:
    again = compared(stored_as(tmp_path, LOST, status=Status.AS_EXPECTED), [LOST])
    assert (Change.DIFFERENT, (), ()) == told(again)


def test_expected_loss_that_is_not_found_any_more_is_a_mismatch(tmp_path: Path) -> None:
    stored = stored_as(tmp_path, LOST, expected="lost m1", status=Status.AS_EXPECTED)
    again = compared(stored, [])
    assert (Change.DIFFERENT, Status.MISMATCH) == (again.change, again.now.status)
    assert "missing: lost m1" == again.now.reason


def test_failure_of_the_harness_stays_since_no_history_tells_it(tmp_path: Path) -> None:
    again = compared(stored_as(tmp_path, FAILED), [])
    assert (Change.SAME, (), ()) == told(again)
    assert (Status.UNKNOWN, "the disk is full") == (again.now.status, again.now.reason)


def test_violation_of_a_run_that_failed_before_its_end_is_not_proven() -> None:
    assert [FAILED, LOST] == with_failure([FAILED], [LOST], ended=True)
    assert [Kind.UNCHECKED] * 2 == [each.kind for each in with_failure([FAILED], [LOST], ended=False)]


# --- runs of which less is stored -----------------------------------------------------------------------------
def test_run_without_a_suite_is_compared_with_its_anomalies(tmp_path: Path) -> None:
    stored = StoredRun(run=run_in(tmp_path), anomalies=(LOST,))
    assert Change.SAME is compared(stored, [LOST]).change
    assert (Change.DIFFERENT, (), (LOST,)) == told(compared(stored, []))


@pytest.mark.parametrize(("found", "change"), [
    ([], Change.SAME), ([LOST], Change.DIFFERENT), ([UNREAD], Change.UNKNOWN),
])  # fmt: skip
def test_run_without_a_verdict_is_held_to_its_expectation(
    tmp_path: Path, found: list[Anomaly], change: Change
) -> None:
    again = compared(StoredRun(run=run_in(tmp_path)), found)
    assert (change, None, tuple(found)) == (again.change, again.before, again.appeared)


def test_run_whose_stored_verdict_cannot_be_read_is_never_the_same(tmp_path: Path) -> None:
    assert Change.UNKNOWN is compared(StoredRun(run=run_in(tmp_path), doubt="cut short"), []).change
