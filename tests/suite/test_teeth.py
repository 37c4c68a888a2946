"""The suite fails when it should: a missed loss, a crashing checker or a fault without effect is never valid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers import CHECKERS
from checkers.checker import Checker
from checkers.judge import compare
from harness.cluster.cluster import Cluster
from harness.model import EXIT_CODES, Kind, Verdict
from harness.run.result import Status
from harness.suite.exit_codes import of_suite
from tests.faults import NEMESES
from tests.suite.conftest import Done, PlayOne, judged, ops_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def losing_twin(play_one: PlayOne) -> Done:
    """Play scenario 1 under the old truncation rule, which loses m2."""
    return play_one("kip101-1", "hw", name="-teeth")


def broken(*names: str) -> dict[str, Checker]:
    """Return the checkers, with these replaced by checkers that find nothing."""
    return CHECKERS | {name: replace(CHECKERS[name], rule=lambda _: []) for name in names}


def test_losing_twin_loses_exactly_m2(losing_twin: Done) -> None:
    """Source: KIP-101, Scenario 1."""
    cell = judged(losing_twin)
    assert (Status.AS_EXPECTED, "lost m2") == (cell.status, cell.found)
    first, counts = losing_twin.spec.draw.counts["m1"], losing_twin.spec.draw.counts
    assert [((first, first + counts["m2"]),)] == [a.ranges for a in cell.anomalies if a.kind is Kind.LOST]


def test_losing_twin_called_valid_fails_the_suite(losing_twin: Done) -> None:
    """A judge that misses the loss sees on the way that A lacked m2; one that misses both finds nothing."""
    assert "not-replicated m2 A" == judged(losing_twin, broken("lost")).found
    cell = judged(losing_twin, broken("lost", "committed"))
    assert (Status.MISMATCH, Verdict.VALID, "none") == (cell.status, cell.verdict, cell.found)
    assert EXIT_CODES["invalid"] == of_suite([cell])


def test_checker_that_crashes_leaves_the_cell_unknown(losing_twin: Done) -> None:
    crashing = {**broken("committed"), "lost": replace(CHECKERS["lost"], rule=lambda ops: [ops[len(ops)]])}  # type: ignore[list-item]
    cell = judged(losing_twin, crashing)
    assert Status.UNKNOWN is cell.status
    assert "IndexError" in cell.reason
    assert EXIT_CODES["unknown"] == of_suite([cell])


def test_twin_that_does_not_lose_fails_the_suite(play_one: PlayOne) -> None:
    """A run labelled with the old rule but played under the new one is valid, and so not as expected."""
    played = play_one("kip101-1", "hw", "epochs=yes", "truncate_to=one_answer", name="-secretly-new")
    cell = judged(played)
    assert (Status.MISMATCH, "none") == (cell.status, cell.found)
    assert "missing: lost m2" in cell.reason


def test_power_loss_that_loses_nothing_leaves_the_cell_unknown(play_one: PlayOne) -> None:
    """A power loss that only kills keeps the page cache; the scenario's own check of the files detects it."""

    def only_kills(cluster: Cluster, name: str) -> str:
        return NEMESES["kill"].inject(cluster, name)

    faults = {**NEMESES, "power-loss": replace(NEMESES["power-loss"], inject=only_kills)}
    cell = judged(play_one("kip101-2", "kip101", name="-no-bite", faults=faults))
    assert Status.UNKNOWN is cell.status
    assert "require log B = end(m1)" in cell.reason
    assert EXIT_CODES["unknown"] == of_suite([cell])


def test_fault_whose_probe_fails_leaves_the_cell_unknown(play_one: PlayOne) -> None:
    """A kill that ends no process is detected by its probe."""

    def does_nothing(cluster: Cluster, name: str) -> str:
        cluster.host.kill = lambda _: "pretended"  # type: ignore[method-assign]
        try:
            return NEMESES["kill"].inject(cluster, name)
        finally:
            del cluster.host.kill  # type: ignore[method-assign]

    faults = {**NEMESES, "kill": replace(NEMESES["kill"], inject=does_nothing)}
    played = play_one("kip101-1", "hw", name="-not-killed", faults=faults)
    cell = judged(played)
    assert Status.UNKNOWN is cell.status
    assert "still alive" in cell.reason
    assert ["kill"] == [op.f for op in ops_of(played) if (op.source, op.type) == ("nemesis", "fail")]


def test_unexpected_violation_is_not_masked_by_what_could_not_be_checked() -> None:
    lost = replace(_anomaly(Kind.LOST), ranges=((3, 4),))
    status, why = compare("none", [lost, _anomaly(Kind.UNCHECKED)], {})
    assert Status.MISMATCH is status
    assert "lost 3" in why


def test_suite_without_a_cell_is_unknown() -> None:
    assert EXIT_CODES["unknown"] == of_suite([])


def _anomaly(kind: Kind):  # type: ignore[no-untyped-def]
    from harness.model import Anomaly

    return Anomaly(kind=kind, topic="log", partition=0, sentence="planted")
