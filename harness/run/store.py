"""
Stores runs in results/SUITE/RUN, each file with a fixed name; results/README.md describes the files.

A stored run is enough to check, explain and report it again; nothing else is read.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import limits
from harness.input_file import read_text
from harness.model import ORACLES, Anomaly, UsageError
from harness.tables.manifest import FOLDER

LATEST: Final = "latest"
_ANOMALIES: Final = "the anomalies of a run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    One run's folder; its name is the run's name.

    Attributes:
        power_tier: the power tier of a run that this process has played; "" for a stored run.
        seconds: the time of a run that this process has played; 0.0 for a stored run.
        failure: why this process could not play the run or take it down, "" if it could.
        uri: the folder of a run that only Spark can read, as Spark names it; "" for a folder of this machine.
    """

    path: Path
    power_tier: str = ""
    seconds: float = 0.0
    failure: str = ""
    uri: str = ""

    @property
    def folder(self) -> Path | str:
        """Where its files are: the path of a folder, or a URI."""
        return self.uri or self.path

    @property
    def name(self) -> str:
        """The run's name, unique within its suite."""
        return self.path.name

    @property
    def history(self) -> Path:
        """Every op, one per line, written during the run."""
        return self.path / "history.jsonl"

    @property
    def tables(self) -> Path:
        """The folder of the same ops as tables, of a large run (harness/tables)."""
        return self.path / FOLDER

    @property
    def anomalies(self) -> Path:
        """The anomalies that the checkers proved."""
        return self.path / "anomalies.json"

    @property
    def schedule(self) -> Path:
        """The schedule of a random run, as a scenario file."""
        return self.path / "schedule.txt"

    @property
    def executed(self) -> Path:
        """The steps of a long run that were tried, with the nodes that aims meant, as a scenario file."""
        return self.path / "executed.txt"

    @property
    def chaos(self) -> Path:
        """The page of a long run: its availability by minute, and when each fault was in force."""
        return self.path / "chaos.html"

    @property
    def shrunk(self) -> Path:
        """The schedule of a finding, shrunk (harness/search/shrink); only findings have the file."""
        return self.path / "shrunk.txt"

    @property
    def oracles(self) -> Path:
        """The violations that the simulator's oracles saw; the file exists only if there are any."""
        return self.path / "oracles.txt"

    @property
    def traceback(self) -> Path:
        """Where a run failed that could not be played or taken down; the file exists only then."""
        return self.path / "traceback.txt"

    @property
    def logs(self) -> Path:
        """The lines that the nodes' processes printed, one file per node."""
        return self.path / "logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDir:
    """One suite's folder: its table, its report, and a folder for each run."""

    path: Path

    @property
    def suite(self) -> Path:
        """The verdict table as data."""
        return self.path / "suite.json"

    @property
    def report(self) -> Path:
        """The verdict table, timelines and lineages for a browser."""
        return self.path / "report.html"

    def run(self, name: str) -> Run:
        """Return the run of this name, whether its folder exists or not."""
        return Run(path=self.path / name)

    def create_run(self, name: str) -> Run:
        """Create the folder of a new run; raise UsageError if it exists."""
        run = Run(path=_new_folder(self.path / name))
        run.logs.mkdir()
        return run

    def runs(self) -> list[Run]:
        """Return the suite's runs that have a history, sorted by name."""
        return [Run(path=path.parent) for path in sorted(self.path.glob("*/history.jsonl"))]


def create_suite(results: Path, name: str) -> SuiteDir:
    """
    Create the folder of a new suite, and point the link results/latest to it.

    Two commands that begin in one second with one seed have one name: the second gets `name-2`.

    Raises:
        UsageError: the results folder cannot be written.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        path = unique_folder(results, name)
        point(results / LATEST, path.name)
    except OSError as error:
        raise _unwritable(results, str(error.strerror)) from error
    return SuiteDir(path=path)


def unique_folder(parent: Path, name: str) -> Path:
    """
    Make a folder of this name, or of `name-2` and so on if it is there, and return it: no other maker gets it.

    Raises:
        OSError: it cannot be made.
    """
    for number in itertools.count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError("expected a number without end")


def point(link: Path, name: str) -> None:
    """
    Let a link lead to a folder beside it, whose maker alone does so: a reader finds the old one or the new one.

    Raises:
        OSError: it cannot be made.
    """
    partial = link.with_name(f".{link.name}-{name}")
    try:
        partial.unlink(missing_ok=True)
        partial.symlink_to(name)
        partial.replace(link)
    finally:
        partial.unlink(missing_ok=True)


def check_results(results: Path) -> None:
    """Raise UsageError if a suite could not be stored there, without making anything: long searches store last."""
    there = next(path for path in (results, *results.absolute().parents) if os.path.lexists(path))
    if not os.path.isdir(there):
        problem = "Not a directory"
    elif not os.access(there, os.W_OK | os.X_OK):
        problem = "Permission denied"
    else:
        return
    raise _unwritable(results, problem)


def _unwritable(results: Path, problem: str) -> UsageError:
    return UsageError(
        f"results folder {results}: {problem}; expected a folder that can be written; name another (--results)"
    )


def write_anomalies(run: Run, anomalies: Iterable[Anomaly]) -> None:
    """Write the run's anomalies in the order given, and those of the oracles to a file of their own too."""
    anomalies = list(anomalies)
    seen = [
        f"{each.kind.value.removeprefix('oracle-')}: {each.sentence}\n"
        for each in anomalies
        if each.kind in ORACLES
    ]
    if seen:
        _replace(run.oracles, "".join(seen))
    _replace(run.anomalies, json.dumps([anomaly.to_dict() for anomaly in anomalies], indent=1) + "\n")


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole; on a full disk, leave it as it was."""
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_anomalies(run: Run) -> list[Anomaly]:
    """
    Read what `write_anomalies` wrote.

    Raises:
        UsageError: the file is missing, or is nothing that `write_anomalies` wrote; the message names the file.
    """
    return parse_anomalies(read_text(run.anomalies, _ANOMALIES, limits.SUITE_BYTES_MAX), str(run.anomalies))


def parse_anomalies(text: str, where: str) -> list[Anomaly]:
    """Return the anomalies in the text of the file `where`; raise UsageError as `read_anomalies` does."""
    try:
        return [Anomaly.from_dict(raw) for raw in json.loads(text)]
    # RecursionError: lists within lists, too deep for the reader of JSON.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{where}: {error!r:.200}; expected {_ANOMALIES}") from error


def _new_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"{path}: already there; expected a new name, or move the old folder away") from error
    return path
