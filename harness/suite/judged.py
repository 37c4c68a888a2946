"""Judge a run that this process has played, or could not play, and store what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkers.judge import judge
from harness.history.file import read_history
from harness.model import Anomaly, HistoryError, Op
from harness.run.failure import failure_of, reason_of
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import Run, write_anomalies
from harness.tables.manifest import LINES_MAX, TablesError

# The size in bytes of a history up to which the rules are applied here, if Spark did not: some 240,000 ops.
IN_PROCESS_MAX: Final = 4 * LINES_MAX


def judge_run(
    spec: RunSpec, run: Run, anomalies: Sequence[Anomaly] | None = None
) -> tuple[RunResult, Sequence[Op]]:
    """
    Judge a run by its history, and store its anomalies.

    A run that failed, or that cannot be read or stored, is unknown, with the reason. A large run is read from its
    tables, without its bulk. One that is too large for this process, of which Spark says nothing, is unknown.

    Args:
        anomalies: what Spark's executors found in the run; None applies the rules here.

    Returns:
        The result, and the run's history, or an `AbridgedRun`.
    """
    ops, failure = _history_of(run, anomalies)
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


def require_small(run: Run) -> None:
    """Raise HistoryError if a run is too large for the rules to be applied in this process."""
    size = run.history.stat().st_size
    if size > IN_PROCESS_MAX:
        raise HistoryError(
            f"{run.history}: {size:,} bytes; expected at most {IN_PROCESS_MAX:,} without Spark, which judges "
            "larger runs from their tables"
        )


def _history_of(run: Run, anomalies: Sequence[Anomaly] | None) -> tuple[Sequence[Op], str]:
    """Return a run's history, and its failure; a run that failed may have no history."""
    if run.failure and not run.history.exists():
        return (), run.failure
    try:
        if anomalies is None:
            require_small(run)
        elif run.history.stat().st_size > LINES_MAX:
            from harness.suite.abridged import read_abridged  # with pandas: only a large run waits for it

            return read_abridged(run, anomalies), run.failure
        return read_history(run.history), run.failure
    except (OSError, HistoryError, TablesError) as error:
        return (), run.failure or f"its history cannot be read: {reason_of(error)}"
