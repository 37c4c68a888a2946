"""
Find stored runs, and what was found in each when it was judged.

A run is a folder with a history, or with only its tables. The folder that it is in is its suite's. What is stored
of its verdict is its result in the suite's suite.json, else its anomalies.json, else nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.input_file import why_unread
from harness.model import Anomaly, UsageError
from harness.run.folders import stored_folders
from harness.run.result import RunResult
from harness.run.store import Run, SuiteDir, parse_anomalies, read_anomalies
from harness.run.suite import Suite
from harness.tables.manifest import LINES_MAX, MANIFEST

_EXPECTED: Final = "expected a run's folder, a suite's, or one with suites in it, such as results"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """
    A stored run.

    Attributes:
        run: its folder.
        result: its result in suite.json, None if that has none.
        anomalies: what was found when it was judged, None if nothing is stored.
        problem: why it cannot be checked, "" if it can.
        doubt: why it cannot be compared with what is stored, "" if it can.
    """

    run: Run
    result: RunResult | None = None
    anomalies: tuple[Anomaly, ...] | None = None
    problem: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSuite:
    """
    The runs of one folder.

    Attributes:
        folder: the suite's folder.
        suite: what suite.json says, None if there is none, or if it cannot be read.
        runs: those that were asked for, by name.
        problem: why suite.json cannot be read, "" if it can.
        uri: the folder as Spark names it, if only Spark can read it.
    """

    folder: SuiteDir
    suite: Suite | None
    runs: tuple[StoredRun, ...]
    problem: str = ""
    uri: str = ""

    @property
    def place(self) -> str:
        """Its folder, as it is printed."""
        return self.uri or str(self.folder.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """
    What was found in some folders.

    Attributes:
        suites: the suites, by path.
        unlisted: folders that could not be listed, each with the reason.
    """

    suites: tuple[StoredSuite, ...]
    unlisted: tuple[str, ...]


def stored_elsewhere(found: Mapping[str, str | None]) -> Stored:
    """
    Return runs that only Spark can read, by the folders that they are in.

    Their suite.json is not read: what was found in them before is what their anomalies.json says.

    Args:
        found: the URI of each run -> the text of its anomalies.json, None if it has none.
    """
    suites: dict[str, list[StoredRun]] = {}
    for uri, text in found.items():
        anomalies, doubt = _elsewhere(uri, text)
        run = Run(path=Path(uri), uri=uri)
        suites.setdefault(uri.rpartition("/")[0], []).append(StoredRun(run=run, anomalies=anomalies, doubt=doubt))
    return Stored(
        suites=tuple(
            StoredSuite(folder=SuiteDir(path=Path(uri)), uri=uri, suite=None, runs=tuple(runs))
            for uri, runs in suites.items()
        ),
        unlisted=(),
    )


def find_stored(folders: Sequence[Path]) -> Stored:
    """
    Return the suites in these folders with their runs; each run once, whatever folders overlap.

    A run that only suite.json names is one that is missing. Links below the folders are not followed: `latest` is
    a suite with a name of its own.

    Raises:
        UsageError: a folder is none, or has no run.
    """
    finder = _Finder()
    for folder in folders:
        before = finder.count
        finder.walk(_real(folder))
        if finder.count == before:
            why = "; ".join([*finder.unlisted, *finder.problems]) or "no run there"
            raise UsageError(f"{folder}: {why}; {_EXPECTED}")
    suites = (_suite(path, finder.table(path), sorted(runs)) for path, runs in sorted(finder.chosen.items()))
    return Stored(
        suites=tuple(suites),
        unlisted=tuple(f"{each}; expected a folder that can be listed" for each in finder.unlisted),
    )


class _Finder:
    """
    Looks into folders.

    Attributes:
        chosen: each suite's folder -> the folders of its runs.
        unlisted: what could not be listed, and why.
        count: how many runs were found; one that is found again counts again.
    """

    def __init__(self) -> None:
        self.chosen: dict[Path, set[Path]] = {}
        self.unlisted: list[str] = []
        self.count = 0
        self._tables: dict[Path, tuple[Suite | None, str]] = {}

    @property
    def problems(self) -> list[str]:
        """Why tables of suites cannot be read."""
        return [problem for _, problem in self._tables.values() if problem]

    def walk(self, top: Path) -> None:
        """Look into the folder and all below it, but not into runs."""
        for path, is_a_run in stored_folders(top, self._note):
            if is_a_run:
                self._add(path)
                continue
            table, _ = self.table(path)
            for result in table.results if table else ():
                self._add(SuiteDir(path=path).run(result.run).path)

    def table(self, folder: Path) -> tuple[Suite | None, str]:
        """Return what a suite's table says, and why it cannot be read."""
        if folder not in self._tables:
            self._tables[folder] = _table(SuiteDir(path=folder))
        return self._tables[folder]

    def _add(self, run: Path) -> None:
        self.chosen.setdefault(run.parent, set()).add(run)
        self.count += 1

    def _note(self, error: OSError) -> None:
        self.unlisted.append(f"{error.filename}: {error.strerror}")


def is_large(run: Run) -> bool:
    """Return True if a run is judged from its tables: it has many lines, or none at all."""
    return not os.path.exists(run.history) or run.history.stat().st_size > LINES_MAX


def _real(folder: Path) -> Path:
    """Return the path of a folder without links; raise UsageError if it is none."""
    try:
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # before Python 3.13, a loop of links is a RuntimeError
        raise UsageError(f"{folder}: {getattr(error, 'strerror', None) or error}; {_EXPECTED}") from error
    if not os.path.isdir(real):
        raise UsageError(f"{folder}: Not a directory; {_EXPECTED}")
    return real


def _table(folder: SuiteDir) -> tuple[Suite | None, str]:
    if not _is_there(folder.suite):
        return None, ""
    try:
        return Suite.read(folder.suite), ""
    except UsageError as error:
        return None, str(error)


def _suite(path: Path, table: tuple[Suite | None, str], runs: Sequence[Path]) -> StoredSuite:
    suite, problem = table
    results = {result.run: result for result in suite.results} if suite else {}
    stored = tuple(stored_run(Run(path=run), results.get(run.name)) for run in runs)
    return StoredSuite(folder=SuiteDir(path=path), suite=suite, runs=stored, problem=problem)


def stored_run(run: Run, result: RunResult | None = None) -> StoredRun:
    """Return a run with what is stored of its verdict: its result in a suite's table, if that has one."""
    anomalies, doubt = (result.anomalies, "") if result else _anomalies(run)
    return StoredRun(run=run, result=result, anomalies=anomalies, doubt=doubt, problem=_problem(run))


def _problem(run: Run) -> str:
    """Return why there is nothing to judge: neither a history, nor tables without one."""
    manifest = run.tables / MANIFEST
    what = why_unread(manifest if _is_there(manifest) and not _is_there(run.history) else run.history)
    return f"{run.history}: {what}; expected a run's history, or its tables beside it" if what else ""


def _anomalies(run: Run) -> tuple[tuple[Anomaly, ...] | None, str]:
    if not _is_there(run.anomalies):
        return None, ""
    return _read(lambda: read_anomalies(run))


def _elsewhere(uri: str, text: str | None) -> tuple[tuple[Anomaly, ...] | None, str]:
    return (None, "") if text is None else _read(lambda: parse_anomalies(text, f"{uri}/anomalies.json"))


def _read(read: Callable[[], list[Anomaly]]) -> tuple[tuple[Anomaly, ...] | None, str]:
    try:
        return tuple(read()), ""
    except UsageError as error:
        return None, str(error)


def _is_there(path: Path) -> bool:
    """Return True if the name exists, even as a link to nothing."""
    return os.path.lexists(path)
