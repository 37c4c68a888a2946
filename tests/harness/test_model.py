"""The data model: verdicts merge by severity, ops and anomalies survive JSON, offsets fold into ranges."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import (
    EXIT_OF_VERDICT,
    VERDICT_OF,
    Anomaly,
    HistoryError,
    Kind,
    Op,
    OpType,
    Source,
    Verdict,
    ranges_of,
)


def test_verdicts_merge_by_severity_so_that_nothing_masks_a_violation() -> None:
    assert Verdict.VALID is Verdict.merge([])
    assert Verdict.INVALID is Verdict.merge([Verdict.UNKNOWN, Verdict.INVALID, Verdict.HANG])
    assert Verdict.HANG is Verdict.merge([Verdict.UNKNOWN, Verdict.HANG, Verdict.PERMITTED])
    assert Verdict.UNKNOWN is Verdict.merge([Verdict.PERMITTED, Verdict.UNKNOWN])


def test_every_verdict_has_an_exit_code_and_every_kind_a_verdict() -> None:
    assert {Verdict.VALID: 0, Verdict.PERMITTED: 0, Verdict.UNKNOWN: 3, Verdict.HANG: 5, Verdict.INVALID: 4} == (
        EXIT_OF_VERDICT
    )
    assert set(Kind) == set(VERDICT_OF)


def test_op_survives_json() -> None:
    op = Op(
        index=3,
        time_ns=5,
        source=Source.LOG,
        process="A",
        type=OpType.OK,
        f="batch",
        value={"records": [[0, "d", "v\n"]], "epoch": -1},
    )
    assert op == Op.from_json(op.to_json())


@pytest.mark.parametrize("line", ["", "{}", "[]", '{"index": "x"}', "not json"])
def test_line_that_is_no_op_is_told_as_such(line: str) -> None:
    with pytest.raises(HistoryError, match="expected one JSON object"):
        Op.from_json(line)


def test_anomaly_survives_json() -> None:
    anomaly = Anomaly(
        kind=Kind.DIVERGED, topic="t", partition=1, ranges=((1, 3), (5, 6)), nodes=("A", "B"), epoch=2, proof=(7,)
    )
    assert anomaly == Anomaly.from_dict(anomaly.to_dict())
    assert 3 == anomaly.offsets
    assert Verdict.INVALID is anomaly.verdict


@given(st.sets(st.integers(min_value=0, max_value=60)))
def test_ranges_hold_exactly_the_offsets_and_never_touch(offsets: set[int]) -> None:
    ranges = ranges_of(offsets)
    assert sorted(offsets) == [offset for first, end in ranges for offset in range(first, end)]
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
