"""Stored suites for tests: results as a suite stores them, and a history for each run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.model import Anomaly, Kind, Verdict
from harness.run.result import RunResult, Status
from tests.report.samples import sample_result, suite_of

LOST = Anomaly(
    kind=Kind.LOST, topic="t", partition=0, ranges=((1, 3), (5, 6)), nodes=("A", "B"), epoch=3, checker="lost"
)


def result(scenario: str, protocol: str, verdict: Verdict = Verdict.VALID, *found: Anomaly) -> RunResult:
    """Return a result as expected."""
    one = sample_result("kip101-1", protocol, anomalies=found)
    return replace(
        one, scenario=scenario, verdict=verdict, status=Status.AS_EXPECTED, run=f"{scenario}-{protocol}"
    )


def store_suite(
    folder: Path, results: list[RunResult], histories: Mapping[str, bytes], *, started: str, host: str = "local"
) -> Path:
    """Store a suite, with the histories of some runs by name."""
    folder.mkdir(parents=True)
    replace(suite_of(results), started=started, host=host, target="broker").write(folder / "suite.json")
    for name, content in histories.items():
        (folder / name).mkdir()
        (folder / name / "history.jsonl").write_bytes(content)
    return folder
