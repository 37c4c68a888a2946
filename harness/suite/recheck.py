"""
Judge stored runs again, all in one Spark session, and compare each with what is stored of it.

Runs are sent to Spark in batches, so that there is progress to show. If Spark cannot be used any more, small runs
are judged in this process, by the same rules; larger ones are unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from checkers.facts.view import NO_KEY, unchecked
from checkers.judge import check_in_process
from harness.history.file import read_history
from harness.model import Anomaly, HistoryError, UsageError
from harness.run.failure import reason_of
from harness.run.store import Run
from harness.suite.again import Again, compared
from harness.suite.judged import require_small
from harness.suite.spark_worker import SparkWorker
from harness.suite.stored import Stored, StoredRun, StoredSuite

# Of one request to Spark. A request of many small runs takes seconds.
BATCH_RUNS_MAX: Final = 500
BATCH_BYTES_MAX: Final = 256 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSuite:
    """A stored suite, and its runs as they were checked again."""

    stored: StoredSuite
    runs: tuple[Again, ...]


def recheck(spark: SparkWorker, stored: Stored, done: Callable[[int], None]) -> list[CheckedSuite]:
    """
    Judge the runs of stored suites again.

    Args:
        spark: judges them.
        stored: the suites.
        done: called with a number of runs when Spark has judged so many more.

    Raises:
        UsageError: the machine lacks something that Spark needs.
    """
    runs = [each.run for suite in stored.suites for each in suite.runs if not each.problem]
    found = _Found(spark)
    for batch in batches(runs):
        found.add(batch)
        done(len(batch))
    return [
        CheckedSuite(stored=suite, runs=tuple(compared(*found.of(each)) for each in suite.runs))
        for suite in stored.suites
    ]


def batches(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Yield runs in groups of bounded number and size; a run that is larger is alone."""
    batch: list[Run] = []
    size = 0
    for run in runs:
        # What is elsewhere is listed by Spark, and counted by number alone.
        mine = 0 if run.uri else run.history.stat().st_size if os.path.exists(run.history) else BATCH_BYTES_MAX
        if batch and (len(batch) >= BATCH_RUNS_MAX or size + mine > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(run)
        size += mine
    if batch:
        yield batch


class _Found:
    """What was found in each run."""

    def __init__(self, spark: SparkWorker) -> None:
        self._spark = spark
        self._lost = ""
        self._found: dict[Path | str, Sequence[Anomaly]] = {}
        self._problems: dict[Path | str, str] = {}

    def add(self, runs: Sequence[Run]) -> None:
        """Judge these runs."""
        try:
            if not self._lost:
                self._found |= self._on_spark(runs)
                return
        except UsageError:
            raise
        except Exception as error:
            self._lost = f"Spark: {reason_of(error)}"
        for run in runs:
            self._add_without_spark(run)

    def of(self, stored: StoredRun) -> tuple[StoredRun, Sequence[Anomaly]]:
        """Return a run with what was found in it, or with the reason why it cannot be checked."""
        problem = stored.problem or self._problems.get(stored.run.folder, "")
        if problem:
            return replace(stored, problem=problem), [_unchecked(problem)]
        return stored, self._found[stored.run.folder]

    def _on_spark(self, runs: Sequence[Run]) -> dict[Path | str, Sequence[Anomaly]]:
        found = self._spark.check([run.folder for run in runs])
        unique = len({run.name for run in runs}) == len(runs)
        return {run.folder: found[run.name if unique else str(run.folder)] for run in runs}

    def _add_without_spark(self, run: Run) -> None:
        if run.uri:
            self._problems[run.uri] = self._lost
            return
        try:
            require_small(run)
            self._found[run.path] = check_in_process(read_history(run.history))
        except (OSError, HistoryError) as error:
            self._problems[run.path] = f"{self._lost}; then {reason_of(error)}"


def _unchecked(why: str) -> Anomaly:
    return unchecked(NO_KEY, f"The run cannot be checked: {why}.", "whole")
