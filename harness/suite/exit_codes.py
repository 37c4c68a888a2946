"""The exit code of a command that judged runs: by their expectations; a random run has none, but a verdict."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from harness.model import EXIT_CODES, EXIT_OF_VERDICT, Verdict
from harness.run.result import RunResult, Status
from harness.run.spec import NO_VIOLATION

_OF_STATUS: Final = {
    Status.AS_EXPECTED: EXIT_CODES["valid"],
    Status.UNKNOWN: EXIT_CODES["unknown"],
    Status.MISMATCH: EXIT_CODES["invalid"],
}


def of_suite(results: Collection[RunResult], problems: Collection[str] = ()) -> int:
    """Return 4 if a run is a mismatch, else 3 if a run is unknown, none was played or problems exist, else 0."""
    codes = {_OF_STATUS[result.status] for result in results}
    if EXIT_CODES["invalid"] in codes:
        return EXIT_CODES["invalid"]
    return (
        EXIT_CODES["unknown"] if EXIT_CODES["unknown"] in codes or problems or not results else EXIT_CODES["valid"]
    )


def of_run(result: RunResult, problems: Collection[str] = ()) -> int:
    """
    Return the code of one run that was played alone.

    Args:
        result: one that expects an outcome is judged as a suite of one; any other by its verdict.
        problems: what keeps it from being complete, whatever it shows.
    """
    if result.expected != NO_VIOLATION:
        return of_suite([result], problems)
    return EXIT_OF_VERDICT[Verdict.merge([result.verdict, Verdict.UNKNOWN if problems else Verdict.VALID])]
