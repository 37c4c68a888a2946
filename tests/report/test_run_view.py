"""The parts of a run's section that are selected rather than copied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model import OpType, Source
from harness.report import limits
from harness.report.run_view import chosen, view_of
from tests.events.filled import filled
from tests.report.samples import scenario1, unknown1


def test_short_history_is_shown_whole() -> None:
    cell, ops = scenario1("hw")
    view = view_of(cell, "k", ops)
    assert [op.index for op in ops] == [line.index for line in view.lines]
    assert view.left_out == ""


def test_long_history_keeps_proof_and_faults_before_all_else() -> None:
    _, ops = scenario1("hw")
    filler = next(op for op in ops if op.f == "append")
    long = [*ops, *(replace(filler, index=len(ops) + n) for n in range(5000))]
    kept = {op.index for op in chosen(long, {5000})}
    assert len(kept) == limits.HISTORY_ROWS_MAX
    assert 5000 in kept
    assert {op.index for op in ops if op.f in ("kill", "truncate", "state")} <= kept


@pytest.mark.parametrize("source", Source)
def test_long_history_may_have_ops_of_any_source(source: Source) -> None:
    _, ops = scenario1("hw")
    value = filled(source, "anything", {})
    filler = replace(ops[0], source=source, type=OpType.INFO, f="anything", value=value)
    long = [*ops, *(replace(filler, index=len(ops) + n) for n in range(5000))]
    assert limits.HISTORY_ROWS_MAX == len(chosen(long))


def test_endless_proof_leaves_half_of_the_room_to_the_rest() -> None:
    _, ops = scenario1("hw")
    filler = next(op for op in ops if op.f == "append")
    long = [*ops, *(replace(filler, index=len(ops) + n) for n in range(5000))]
    kept = {op.index for op in chosen(long, set(range(len(ops), 5000)))}
    assert {op.index for op in ops} <= kept


def test_steps_stand_below_the_narrative_that_they_belong_to() -> None:
    cell, ops = scenario1("hw")
    passages = view_of(cell, "k", ops).passages
    assert [len(p.steps) for p in passages] == [2, 2, 2, 1, 2]
    assert passages[1].narrative[0].startswith("A holds m2, but the answer")
    assert [s.text for s in passages[1].steps] == ["hold B A Fetch answer", "append B m2"]


def test_failed_step_tells_its_error() -> None:
    cell, ops = unknown1()
    last = view_of(cell, "k", ops).passages[-1].steps[-1]
    assert (last.outcome, last.error) == ("fail", cell.reason)


def test_proof_beyond_the_cap_is_named_by_index() -> None:
    cell, ops = scenario1("hw")
    anomaly = replace(cell.anomalies[0], proof=tuple(range(limits.PROOF_ROWS_MAX + 2)))
    (finding,) = view_of(replace(cell, anomalies=(anomaly,)), "k", ops).findings
    assert len(finding.lines) == limits.PROOF_ROWS_MAX
    assert finding.unshown == f"{limits.PROOF_ROWS_MAX}, {limits.PROOF_ROWS_MAX + 1}"


def test_anomalies_beyond_the_cap_are_counted_by_kind() -> None:
    cell, ops = scenario1("hw")
    many = replace(cell, anomalies=cell.anomalies * (limits.ANOMALIES_MAX + 3))
    view = view_of(many, "k", ops)
    assert len(view.findings) == limits.ANOMALIES_MAX
    assert view.more_findings == "3 more anomalies are not shown: 3 lost."


def test_very_many_ranges_of_an_anomaly_are_counted_in_text_and_drawing() -> None:
    result, ops = scenario1("hw")
    ranges = tuple((10 * n, 10 * n + 1) for n in range(50_000))
    many = replace(result, anomalies=(replace(result.anomalies[0], ranges=ranges),))
    view = view_of(many, "key", ops)
    assert view.findings[0].about.count(",") < 120
    assert "and 49,900 more ranges" in view.findings[0].about
    ((_, drawing),) = view.lineages
    assert "Of 50,000 ranges of one anomaly (lost), the first 100 are drawn." in drawing.notes
    assert len(drawing.plot) < 100_000
