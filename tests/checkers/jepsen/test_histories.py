"""The verdicts over 26 histories are those of Jepsen's own checker, column by column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.jepsen import judge, read
from checkers.jepsen.definitions import ANOMALIES
from checkers.jepsen.show import sentence, verdicts

HISTORIES = Path(__file__).parent / "histories"
NAMES = sorted(path.stem for path in HISTORIES.glob("*.jsonl"))


def ours_and_theirs(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with (HISTORIES / f"{name}.jsonl").open("rb") as file:
        history = read(name, enumerate(file, 1))
    assert [] == history.problems
    expected = json.loads((HISTORIES / f"{name}.expected.json").read_text(encoding="utf-8"))
    return verdicts(history, judge(history)), expected["verdicts"]


def test_there_are_26_histories_each_with_three_verdicts() -> None:
    assert 26 == len(NAMES)
    assert all({"assign+ww", "assign", "subscribe+ww"} == set(ours_and_theirs(name)[1]) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_verdict_is_jepsens_in_every_column(name: str) -> None:
    """
    Source: jepsen.tests.kafka, its checker's verdicts.
    """
    ours, theirs = ours_and_theirs(name)
    for column, their in theirs.items():
        assert their == {**their, **{key: ours[column][key] for key in ("valid", "counts")}}, column
        assert their["error-types"] == ours[column]["error-types"], column
        assert their["bad-error-types"] == ours[column]["bad-error-types"], column


@pytest.mark.parametrize("name", NAMES)
def test_what_is_measured_beside_the_verdict_is_jepsens(name: str) -> None:
    """
    Source: jepsen.tests.kafka, worst-realtime-lag, consume-counts and info-txn-causes.
    """
    ours, theirs = (each["assign+ww"] for each in ours_and_theirs(name))
    for key in ("worst-realtime-lag", "consume-counts", "info-txn-causes"):
        assert theirs[key] == ours[key]


@pytest.mark.parametrize("name", NAMES)
def test_findings_have_jepsens_form(name: str) -> None:
    """Which cycle is shown, and who polled ahead, is a choice; every key of a finding is Jepsen's."""
    ours, theirs = (each["assign+ww"]["errors"] for each in ours_and_theirs(name))
    assert theirs.keys() == ours.keys()
    for kind in theirs.keys() - {"unseen", "empty-transaction-graph"}:
        assert len(theirs[kind]) == len(ours[kind])
        for one, other in zip(theirs[kind], ours[kind], strict=True):
            assert one.keys() <= other.keys(), kind
            for key in one.keys() - {"max-read", "steps", "subgraph", "cycle", "scc"}:
                assert one[key] == other[key], (kind, key)
    assert theirs.get("unseen") == ours.get("unseen")


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_is_a_defined_kind_with_a_sentence(name: str) -> None:
    with (HISTORIES / f"{name}.jsonl").open("rb") as file:
        judged = judge(read(name, enumerate(file, 1)))
    for verdict in judged.values():
        for finding in verdict.findings:
            assert finding.kind in ANOMALIES
            assert all(f"op {op.index} (line {op.line}" in sentence(finding) for op in finding.ops[:1]) or (
                finding.kind.endswith("-exists") or finding.kind == "unseen"
            )
