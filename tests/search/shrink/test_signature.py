"""The signature of a finding is what its worst verdict is about, and what real processes can show too."""

from __future__ import annotations

import pytest

from harness.model import Anomaly, Kind, Verdict
from harness.search.shrink.signature import Signature
from tests.search.results import result_of


def anomalies(*kinds: Kind) -> list[Anomaly]:
    return [Anomaly(kind=kind, topic="log", partition=0) for kind in kinds]


@pytest.mark.parametrize(("verdict", "kinds", "expected"), [
    (Verdict.INVALID, (Kind.LOST, Kind.STUCK, Kind.PERMITTED), {Kind.LOST}),
    (Verdict.INVALID, (Kind.ORACLE_PREFIX, Kind.DIVERGED), {Kind.DIVERGED}),
    (Verdict.INVALID, (Kind.NOT_REPLICATED, Kind.DIVERGED, Kind.LOST), {Kind.DIVERGED, Kind.LOST}),
    (Verdict.INVALID, (Kind.NOT_REPLICATED, Kind.ORACLE_COMMITTED), {Kind.NOT_REPLICATED}),
    (Verdict.INVALID, (Kind.ORACLE_COMMITTED, Kind.STUCK), {Kind.ORACLE_COMMITTED}),
    (Verdict.HANG, (Kind.STUCK, Kind.PERMITTED), {Kind.STUCK}),
])  # fmt: skip
def test_signature_has_the_outcomes_that_the_rules_found(
    verdict: Verdict, kinds: tuple[Kind, ...], expected: set[Kind]
) -> None:
    signature = Signature.of(result_of(verdict, *kinds))
    assert signature is not None
    assert expected == signature.kinds
    assert (signature.kinds == {Kind.ORACLE_COMMITTED}) == signature.needs_oracles


@pytest.mark.parametrize(("verdict", "kinds"), [
    (Verdict.VALID, ()),
    (Verdict.PERMITTED, (Kind.PERMITTED,)),
    (Verdict.UNKNOWN, (Kind.UNCHECKED, Kind.VACUOUS)),
])  # fmt: skip
def test_run_without_a_violation_has_none(verdict: Verdict, kinds: tuple[Kind, ...]) -> None:
    assert None is Signature.of(result_of(verdict, *kinds))


def test_one_of_the_kinds_is_enough_and_another_kind_is_not() -> None:
    signature = Signature(kinds=frozenset({Kind.LOST, Kind.DIVERGED}))
    assert True is signature.shown_by(anomalies(Kind.PERMITTED, Kind.DIVERGED), written=True)
    assert False is signature.shown_by(anomalies(Kind.HOLE, Kind.STUCK), written=False)
    assert "lost or diverged" == str(signature)


def test_written_scenario_that_lacks_evidence_shows_nothing() -> None:
    signature = Signature(kinds=frozenset({Kind.LOST}))
    seen = anomalies(Kind.LOST, Kind.UNCHECKED)
    assert (False, True) == tuple(signature.shown_by(seen, written=written) for written in (True, False))
