"""
Find the suites and runs below folders that a user names. What is broken there is listed, and ends nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from checkers.measures.schema import FOLDER, SCHEMA_FILE
from harness import limits
from harness.input_file import why_unread
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
        untabled: folders of runs without one -> the runs that are asked for.
        small: runs that are measured from their lines.
        large: runs that are measured from their tables.
        chosen: runs that were named by themselves; of their suites nothing else counts.
        unreadable: a suite's folder, the name of a run or None, and what is wrong.
    """

    suites: list[Path] = field(default_factory=list)
    untabled: dict[Path, list[Run]] = field(default_factory=dict)
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
        if not os.path.exists(folder / "suite.json") and is_run(folder):
            found.chosen.setdefault(folder.parent, set()).add(folder.name)
            continue
        suites, unlisted = _suites_in(folder)
        if not suites:
            why = "; ".join(reason for _, _, reason in unlisted) or (
                f"{path}: no suite in it; expected a folder such as results, or one of its suites"
            )
            raise UsageError(why)
        found.unreadable += unlisted
        whole |= suites
    found.chosen = {folder: runs for folder, runs in found.chosen.items() if folder not in whole}
    for folder in sorted({*whole, *found.chosen}):
        _add_suite(found, SuiteDir(path=folder), lines_max)
    return found


def _folder(path: Path) -> Path:
    try:
        problem = "" if stat.S_ISDIR(path.stat().st_mode) else "not a folder"
    except OSError as error:
        problem = "no such folder" if isinstance(error, FileNotFoundError) else str(error.strerror)
    if problem:
        raise UsageError(f"{path}: {problem}; expected the folder of a suite or a run, or one with suites in it")
    return path.resolve()


def _suites_in(folder: Path) -> tuple[dict[Path, None], list[tuple[Path, str | None, str]]]:
    """Return the folders of suites, also those that have runs and no table; and those that cannot be listed."""
    unlisted: list[tuple[Path, str | None, str]] = []

    def note(error: OSError) -> None:
        why = f"{error.filename}: {error.strerror}; expected a folder that can be listed"
        unlisted.append((Path(error.filename), None, why))

    found = stored_folders(folder, note, leave_out=lambda path: os.path.exists(path / FOLDER / SCHEMA_FILE))
    return dict.fromkeys(path.parent if is_a_run else path for path, is_a_run in found), unlisted


def _add_suite(found: Folders, suite: SuiteDir, lines_max: int) -> None:
    has_table = os.path.lexists(suite.suite)
    problem = _problem(suite.suite, limits.SUITE_BYTES_MAX) if has_table else ""
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
    chosen = found.chosen.get(suite.path)
    runs = [
        Run(path=folder)
        for folder in folders
        if os.path.isdir(folder) and is_run(folder) and (chosen is None or folder.name in chosen)
    ]
    if has_table:
        found.suites.append(suite.path)
    else:
        found.untabled[suite.path] = runs
    for run in runs:
        _add_run(found, run, lines_max)


def _add_run(found: Folders, run: Run, lines_max: int) -> None:
    problem = _problem(run.history)
    if not problem and run.history.stat().st_size <= lines_max:
        found.small.append(run)
    elif not problem or os.path.exists(run.tables / MANIFEST):
        found.large.append(run)
    else:
        found.unreadable.append((run.path.parent, run.name, f"history.jsonl: {problem}; expected a run's history"))


def _problem(path: Path, bytes_max: int | None = None) -> str:
    """Return why a file cannot be read, "" if nothing is known."""
    if why := why_unread(path):
        return why
    size = path.stat().st_size
    if not size:
        return "empty"
    return f"{size:,} bytes" if bytes_max is not None and size > bytes_max else ""
