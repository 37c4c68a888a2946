"""Judge a run that this process has played, or could not play, and store what was found."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.judge import judge
from harness.history.file import read_history
from harness.model import Anomaly, Op
from harness.run.failure import failure_of, reason_of
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, write_anomalies


def judge_run(
    spec: RunSpec, run: Run, anomalies: Sequence[Anomaly] | None = None
) -> tuple[RunResult, Sequence[Op]]:
    """
    Judge a run by its history, and store its anomalies.

    A run that failed, or that cannot be read or stored, is unknown, with the reason.

    Args:
        anomalies: what Spark's executors found in the run; None applies the rules here.

    Returns:
        The result, and the run's history.
    """
    ops, failure = _history_of(run)
    try:
        result = judge(spec, ops, anomalies=anomalies, seconds=run.seconds, failure=failure)
    except Exception as error:
        failure = "; ".join(filter(None, (failure, f"cannot be judged: {failure_of(run, error)}")))
        result = judge(spec, (), anomalies=(), seconds=run.seconds, failure=failure)
    if not run.path.is_dir():  # its failure says why
        return result, ops
    try:
        write_anomalies(run, result.anomalies)
    except OSError as error:
        failure = "; ".join(filter(None, (failure, f"its anomalies cannot be stored: {reason_of(error)}")))
        result = judge(spec, ops, anomalies=anomalies, seconds=run.seconds, failure=failure)
    return result, ops


def _history_of(run: Run) -> tuple[Sequence[Op], str]:
    """Return a run's history, and its failure; a run that failed may have no history."""
    if run.failure and not run.history.exists():
        return (), run.failure
    try:
        return read_history(run.history), run.failure
    except OSError as error:
        return (), run.failure or f"its history cannot be read: {reason_of(error)}"
