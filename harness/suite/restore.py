"""
Store the verdicts of runs that were checked again: anomalies.json, and the results in suite.json.

Each file is replaced as a whole, or stays as it was. A run that could not be checked keeps what is stored of it.
The report of a suite whose results changed is written again, so that it does not contradict suite.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from checkers.facts.unread import readable
from checkers.judge import judged_again
from harness.history.file import read_history
from harness.model import Op
from harness.report.page import build_report
from harness.run.failure import reason_of
from harness.run.store import Run, SuiteDir, write_anomalies
from harness.run.suite import Suite
from harness.suite.again import Again, Change
from harness.suite.recheck import CheckedSuite
from harness.suite.stored import is_large


def restore(checked: CheckedSuite) -> list[str]:
    """Store what was found in a suite's runs; return what could not be written, and why."""
    problems: list[str] = []

    def write(path: object, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            problems.append(f"{path}: not written: {reason_of(error)}")

    for each in checked.runs:
        if not each.stored.problem:
            write(each.stored.run.anomalies, partial(write_anomalies, each.stored.run, each.anomalies))
    suite, folder = checked.stored.suite, checked.stored.folder
    if suite is None:
        return problems
    suite = _with_results(suite, checked.runs)
    write(folder.suite, lambda: suite.write(folder.suite))
    if folder.report.exists() and any(each.change is not Change.SAME for each in checked.runs):
        found = {each.stored.run.name: each for each in checked.runs}
        write(folder.report, lambda: build_report(suite, _Histories(folder, found), folder.report))
    return problems


def _with_results(suite: Suite, runs: Sequence[Again]) -> Suite:
    again = {each.stored.run.name: each for each in runs if not each.stored.problem}
    results = (
        judged_again(result, each.now, each.anomalies) if (each := again.get(result.run)) else result
        for result in suite.results
    )
    return replace(suite, results=tuple(results))


class _Histories(Mapping[str, Sequence[Op]]):
    """The histories of a suite's runs, each read when the report draws it."""

    def __init__(self, folder: SuiteDir, found: Mapping[str, Again]) -> None:
        self._folder = folder
        self._found = found

    def __getitem__(self, name: str) -> Sequence[Op]:
        run = self._folder.run(name)
        again = self._found.get(name)
        if again is not None and again.stored.problem:
            return ()
        return readable(_ops_of(run, again))

    def __iter__(self) -> Iterator[str]:
        return (run.name for run in self._folder.runs())

    def __len__(self) -> int:
        return len(self._folder.runs())


def _ops_of(run: Run, again: Again | None) -> Sequence[Op]:
    if is_large(run):
        from harness.suite.abridged import read_abridged  # with pandas: only a large run waits for it

        return read_abridged(run, again.anomalies if again else ())
    return read_history(run.history)
