"""
`judge` turns a run's history into its result; no other function of the project makes a verdict.

The rules run in this process, or on Spark for many runs at once (checkers/spark/runs.py). Both call the same rules
on the same partitions, and a test compares their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from checkers import CHECKERS
from checkers.checker import Checker, check, of_run, partitions, unproven
from checkers.facts.activity import activity_of
from checkers.facts.sequence import breaks_in, in_order
from checkers.facts.unread import readable
from checkers.verdict import Records, difference, found_text, outcome, records_of, verdict_of
from harness.model import Anomaly, HistoryError, Kind, Op, PartOps, Source, UsageError, Verdict
from harness.run.result import RunResult, Status
from harness.run.spec import NO_VIOLATION, RunSpec
from harness.scenario.expectation import parse_expectation

# A random run expects only that there is no violation and no hang.
_RANDOM_STATUS: Final = {
    Verdict.VALID: Status.AS_EXPECTED,
    Verdict.PERMITTED: Status.AS_EXPECTED,
    Verdict.UNKNOWN: Status.UNKNOWN,
    Verdict.HANG: Status.MISMATCH,
    Verdict.INVALID: Status.MISMATCH,
}
_FAILED: Final = "The run failed: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What follows from a run's anomalies: the fields of RunResult with these names."""

    found: str
    status: Status
    reason: str
    verdict: Verdict


def judge(
    spec: RunSpec,
    ops: Sequence[Op],
    *,
    anomalies: Sequence[Anomaly] | None = None,
    seconds: float = 0.0,
    failure: str = "",
) -> RunResult:
    """
    Judge a run by its history.

    Args:
        spec: the spec of the run.
        ops: the run's history.
        anomalies: the anomalies that Spark's executors found in this history; None applies the rules here.
        seconds: the duration of the run, which is only copied to the result.
        failure: why the harness could not play the run, take it down or store it, "" if it could. The run is then
            unknown, unless its history is complete and proves an unexpected violation.
    """
    ops = ops if isinstance(ops, PartOps) else PartOps(ops)
    found = check_in_process(ops) if anomalies is None else list(anomalies)
    if failure:
        found = failed(spec, ops, found, failure)
    try:
        records, activity = records_of(ops), activity_of(ops)
    except HistoryError:
        # What cannot be read has made the run unknown already; it does not count, and ends no command.
        legible = readable(ops)
        ops = legible if isinstance(legible, PartOps) else PartOps(legible)
        records, activity = records_of(ops), activity_of(ops)
    expected = NO_VIOLATION if spec.random else spec.expectation
    assert expected is not None, f"{spec.name}: played without an expectation"
    conclusion = conclude(expected, found, records)
    return RunResult(
        scenario=spec.scenario.name,
        title=spec.scenario.title,
        source="; ".join(spec.scenario.sources),
        protocol=str(spec.variant),
        seed=spec.seed,
        expected=expected,
        found=conclusion.found,
        status=conclusion.status,
        reason=conclusion.reason,
        verdict=conclusion.verdict,
        anomalies=tuple(found),
        run=spec.name,
        rerun=spec.command,
        seconds=seconds,
        activity=activity,
    )


def judged_again(stored: RunResult, conclusion: Conclusion, anomalies: Sequence[Anomaly]) -> RunResult:
    """Return a stored result with what is found in its run now."""
    return replace(
        stored,
        found=conclusion.found,
        status=conclusion.status,
        reason=conclusion.reason,
        verdict=conclusion.verdict,
        anomalies=tuple(anomalies),
    )


def conclude(expected: str, anomalies: Sequence[Anomaly], records: Records) -> Conclusion:
    """
    Conclude from a run's anomalies, whether it has just been played or is stored.

    Args:
        expected: the expected outcome; NO_VIOLATION for a random run.
        anomalies: all that was found in it.
        records: what was acknowledged in it, by which expectations and findings name offsets.
    """
    if expected == NO_VIOLATION:
        verdict = verdict_of(anomalies)
        status, reason = _RANDOM_STATUS[verdict], _reason(anomalies)
    else:
        status, reason = compare(expected, anomalies, records)
    if status is Status.UNKNOWN:
        reason = failure_in(anomalies) or reason  # what else is missing follows from it
    return Conclusion(
        found=found_text(anomalies, records),
        status=status,
        reason="" if status is Status.AS_EXPECTED else reason,
        verdict=verdict_of(anomalies),
    )


def failure_in(anomalies: Sequence[Anomaly]) -> str:
    """Return why the harness could not play the run, as `judge` was told; "" if it could."""
    return next((each.sentence.removeprefix(_FAILED) for each in anomalies if _is_failure(each)), "")


def with_failure(stored: Sequence[Anomaly], found: Sequence[Anomaly], *, ended: bool) -> list[Anomaly]:
    """
    Return what was found in a stored run, with its failure, which its history does not tell.

    Args:
        stored: what was found in it when it was played.
        found: what is found in it now.
        ended: whether its history is complete; only then does it prove something.
    """
    failures = [each for each in stored if _is_failure(each)]
    return [*failures, *(unproven(found) if failures and not ended else found)]


def _is_failure(anomaly: Anomaly) -> bool:
    return anomaly.kind is Kind.UNCHECKED and not anomaly.checker and anomaly.sentence.startswith(_FAILED)


def check_in_process(ops: Sequence[Op], checkers: Mapping[str, Checker] = CHECKERS) -> list[Anomaly]:
    """Apply every checker to a run's history in this process, with the same rules as Spark."""
    broken = breaks_in(ops)
    parts = partitions(in_order(ops) if broken else ops).items()
    found = of_run(check(part, checkers) for _, part in sorted(parts))
    return [*broken, *(unproven(found) if broken else found)]


def failed(spec: RunSpec, ops: PartOps, found: Sequence[Anomaly], failure: str) -> list[Anomaly]:
    """Return the anomalies of a run that failed: the failure first, then what its history shows and proves."""
    lacking = Anomaly(
        kind=Kind.UNCHECKED,
        topic=spec.scenario.topic,
        partition=spec.scenario.partition,
        sentence=f"{_FAILED}{failure}",
    )
    return with_failure([lacking], found, ended=bool(ops.by_key.get((Source.RUNNER, "done"))))


def compare(expected: str, anomalies: Sequence[Anomaly], records: Records) -> tuple[Status, str]:
    """
    Compare the anomalies with an exact expectation; return the status and the reason, "" if as expected.

    Missing evidence makes a run unknown, unless it has an unexpected violation: nothing masks a violation.
    """
    terms = parse_expectation(expected)
    unknown = [anomaly for anomaly in anomalies if anomaly.verdict is Verdict.UNKNOWN]
    expected_kinds = {term.kind for term in terms}
    shown = outcome(anomalies)
    violations = [a for a in shown if a.verdict is Verdict.INVALID and a.kind not in expected_kinds]
    if unknown and not violations:
        return Status.UNKNOWN, " | ".join(anomaly.sentence for anomaly in unknown)
    try:
        differs = difference(terms, anomalies, records)
    except UsageError as error:
        # The expectation names records that were never acknowledged in this run, so nothing was promised.
        return Status.UNKNOWN, str(error)
    return (Status.MISMATCH, differs) if differs else (Status.AS_EXPECTED, "")


def _reason(anomalies: Sequence[Anomaly]) -> str:
    return " | ".join(anomaly.sentence for anomaly in anomalies if anomaly.verdict >= Verdict.UNKNOWN)
