"""A `RunResult` made from its verdict and kinds alone, for tests of code that uses results."""

from __future__ import annotations

from harness.model import Anomaly, Kind, Verdict
from harness.run.result import Activity, RunResult, Status
from harness.run.spec import NO_VIOLATION


def result_of(verdict: Verdict, *kinds: Kind, seed: int = 1, rerun: str = "again") -> RunResult:
    """Return the result of a random run in which these kinds were found: one anomaly each, with the sentence S."""
    return RunResult(
        scenario=f"seed-{seed}",
        title="T",
        source="chance",
        protocol="hw",
        seed=seed,
        expected=NO_VIOLATION,
        found="",
        status=Status.AS_EXPECTED if verdict <= Verdict.PERMITTED else Status.MISMATCH,
        reason="",
        verdict=verdict,
        anomalies=tuple(Anomaly(kind=kind, topic="log", partition=0, sentence="S.") for kind in kinds),
        run=f"seed-{seed}-hw",
        rerun=rerun,
        seconds=0.25,
        activity=Activity(asked={"kill": 2}, bit={"kill": 1}, elections=3, acked=4, steps=5, virtual_s=0.5),
    )
