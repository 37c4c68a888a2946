"""Reverting one rule brings back exactly the anomalies that follow from it."""

from __future__ import annotations

import pytest

from harness.model import Kind
from harness.run.result import RunResult, Status
from tests.kept import keep
from tests.suite.conftest import PlayOne, judged, ops_of

pytestmark = pytest.mark.slow

TRUNCATE_BACK = {
    "kip101-1": "lost m2",
    "kip101-1b": "lost m2",
    "kip101-2": "permitted m2, diverged m2 A B",
    "kip101-2b": "permitted m2, diverged m2 A B, stuck A",
    "kip101-3": "permitted m2, diverged m2 A B",
}
RESUME_BACK = {
    "kip101-1": "none",
    "kip101-2": "permitted m2",
    "kip101-3": "permitted m2, diverged m2 A B, led-twice A epoch 0",
}


@pytest.mark.parametrize("scenario", keep(TRUNCATE_BACK, "kip101-3"))
def test_truncating_to_the_high_watermark_again_brings_the_old_bugs_back(play_one: PlayOne, scenario: str) -> None:
    """Source: KIP-101: leader epochs are stamped and stored, but no follower queries them."""
    played = play_one(scenario, "kip101", "truncate_to=high_watermark", name="-truncate-back")
    cell = judged(played)
    assert (TRUNCATE_BACK[scenario], Status.MISMATCH) == (cell.found, cell.status)
    if scenario == "kip101-3":
        assert {0, 1} == epochs_at(played_offset(cell), ops_of(played))


@pytest.mark.parametrize("scenario", keep(RESUME_BACK, "kip101-3"))
def test_leader_that_resumes_its_epoch_diverges_inside_it(play_one: PlayOne, scenario: str) -> None:
    """Source: KIP-101, returning leaders; Kafka Replication Design V3, E 3.2."""
    played = play_one(scenario, "kip101", "returning_leader=resumes", name="-resume-back")
    cell = judged(played)
    assert RESUME_BACK[scenario] == cell.found
    if scenario == "kip101-3":
        assert Status.MISMATCH is cell.status
        assert {0} == epochs_at(played_offset(cell), ops_of(played))


def played_offset(result: RunResult) -> int:
    """Return the first offset at which the replicas differ."""
    return next(anomaly.ranges[0][0] for anomaly in result.anomalies if anomaly.kind is Kind.DIVERGED)


def epochs_at(offset: int, ops: list) -> set[int]:  # type: ignore[type-arg]
    """Return the leader epochs that the replicas' final logs have at an offset."""
    batches = [op.value for op in ops if (op.source, op.f) == ("log", "batch")]
    return {int(batch["epoch"]) for batch in batches if batch["base"] <= offset <= batch["last"]}
