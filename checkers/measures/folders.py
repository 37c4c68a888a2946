"""
Find the suites and runs below folders that a user names. What is broken there is listed, and ends nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from checkers.measures.schema import FOLDER, SCHEMA_FILE
from harness import limits
from harness.model import UsageError
from harness.run.folders import is_run, stored_folders
from harness.run.store import Run, SuiteDir
from harness.tables.manifest import LINES_MAX, MANIFEST


@dataclass(slots=True)
class Folders:
    """
    What was found.

    Attributes:
        suites: folders with a suite.json that can be opened, each once.
        small: runs that are measured from their lines.
        large: runs that are measured from their tables.
        chosen: runs that were named by themselves; of their suites nothing else counts.
        unreadable: a suite's folder, the name of a run or None, and what is wrong.
    """

    suites: list[Path] = field(default_factory=list)
    small: list[Run] = field(default_factory=list)
    large: list[Run] = field(default_factory=list)
    chosen: dict[Path, set[str]] = field(default_factory=dict)
    unreadable: list[tuple[Path, str | None, str]] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """The number of runs that will be measured."""
        return len(self.small) + len(self.large)


def find_folders(named: Sequence[Path], lines_max: int = LINES_MAX) -> Folders:
    """
    Return the suites and runs in these folders.

    Args:
        named: folders of suites, of runs, or of many suites; links below them are not followed.
        lines_max: the size in bytes of a history up to which it is measured from its lines.

    Raises:
        UsageError: one of them is no folder, or there is no suite in it.
    """
    found = Folders()
    whole: dict[Path, None] = {}
    for path in named:
        folder = _folder(path)
        if not (folder / "suite.json").exists() and is_run(folder):
            found.chosen.setdefault(folder.parent, set()).add(folder.name)
            continue
        suites = _suites_in(folder)
        if not suites:
            raise UsageError(f"{path}: no suite in it; expected a folder such as results, or one of its suites")
        whole |= suites
    found.chosen = {folder: runs for folder, runs in found.chosen.items() if folder not in whole}
    for folder in sorted({*whole, *found.chosen}):
        _add_suite(found, SuiteDir(path=folder), lines_max)
    return found


def _folder(path: Path) -> Path:
    if not path.is_dir():
        problem = "not a folder" if path.exists() else "no such folder"
        raise UsageError(f"{path}: {problem}; expected the folder of a suite or a run, or one with suites in it")
    return path.resolve()


def _suites_in(folder: Path) -> dict[Path, None]:
    """Return the folders of suites; also those that have runs and no table."""
    found = stored_folders(folder, leave_out=lambda path: (path / FOLDER / SCHEMA_FILE).exists())
    return dict.fromkeys(path.parent if is_a_run else path for path, is_a_run in found)


def _add_suite(found: Folders, suite: SuiteDir, lines_max: int) -> None:
    problem = _problem(suite.suite, limits.SUITE_BYTES_MAX)
    if problem:
        found.unreadable.append(
            (suite.path, None, f"suite.json: {problem}; expected the table of a suite that ended")
        )
        return
    try:
        folders = sorted(suite.path.iterdir())
    except OSError as error:
        found.unreadable.append((suite.path, None, f"{error.strerror}; expected a folder that can be listed"))
        return
    found.suites.append(suite.path)
    chosen = found.chosen.get(suite.path)
    for folder in folders:
        if folder.is_dir() and is_run(folder) and (chosen is None or folder.name in chosen):
            _add_run(found, Run(path=folder), lines_max)


def _add_run(found: Folders, run: Run, lines_max: int) -> None:
    problem = _problem(run.history)
    if not problem and run.history.stat().st_size <= lines_max:
        found.small.append(run)
    elif not problem or (run.tables / MANIFEST).exists():
        found.large.append(run)
    else:
        found.unreadable.append((run.path.parent, run.name, f"history.jsonl: {problem}; expected a run's history"))


def _problem(path: Path, bytes_max: int | None = None) -> str:
    """Return why a file cannot be read, "" if nothing is known."""
    try:
        size = path.stat().st_size
    except OSError as error:
        return str(error.strerror)
    if not path.is_file():
        return "not a regular file"
    if not os.access(path, os.R_OK):
        return "Permission denied"
    if not size:
        return "empty"
    return f"{size:,} bytes" if bytes_max is not None and size > bytes_max else ""
