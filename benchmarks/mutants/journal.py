"""
The gauntlet's journal: a line for each mutant that is done, on disk before the next, so that a killed one goes on.

    FOLDER/journal.jsonl   what decides all results: sources and options; then seeds and mutants
    FOLDER/found.md        the page of what found them, written when all that were asked for are done
    FOLDER/shown.txt       their seeds, to take the place of benchmarks/mutants/shown.txt

A folder belongs to one state of the sources: what a mutant showed in another says nothing of this one.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.mutants import apply, probing, reach, worker
from benchmarks.mutants.found import Found
from benchmarks.mutants.hints import SHOWN
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.survey import Survey, Surveyed
from harness.durable_lines import append_line, read_lines
from harness.model import UsageError

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = ("checkers", "harness", "nemesis", "targets", "workloads")
LINES: Final = "journal.jsonl"
AFRESH: Final = "name another folder (--journal), or delete this one to begin anew"


def state_of_sources(mutants: Iterable[Mutant], root: Path = ROOT) -> str:
    """Return a hash of all that decides what is found of mutants, besides options: sources, edits, and Python."""
    found = hashlib.sha256(sys.version.encode())
    files = [path for name in SOURCES for path in (root / name).rglob("*") if path.is_file()]
    own = [Path(str(module.__file__)) for module in (apply, probing, reach, worker)]
    for path in [*sorted(files), *own, SHOWN]:
        if path.parent.name != "__pycache__":
            content = path.read_bytes()
            found.update(f"\n{path.name} {len(content)} {path.parent}\n".replace(str(root), "").encode() + content)
    for mutant in sorted(mutants, key=lambda each: each.name):
        found.update(repr((mutant.name, mutant.module, mutant.edits)).encode())
    return found.hexdigest()


def short_name(about: Mapping[str, Any]) -> str:
    """Return the name of a folder for what decides the results."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]


class Journal:
    """What is done, by name of the mutant, in a folder that this process alone writes."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """
        Open the journal of a folder, or begin one.

        Args:
            about: all that decides the results, as plain JSON data.

        Raises:
            UsageError: the folder has the journal of other sources or options, or something else, or cannot be
                read or written.
        """
        self.path = folder / LINES
        self.about = about
        self.done: dict[str, Found] = {}
        self.survey = Survey()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = read_lines(self.path)
            if not lines:
                append_line(self.path, about)
        except OSError as error:
            raise UsageError(
                f"{folder}: {error.strerror}; expected a folder that can be written; {AFRESH}"
            ) from error
        except ValueError as error:
            raise UsageError(f"{self.path}: {error}; expected lines of JSON; {AFRESH}") from error
        for number, line in enumerate(lines):
            self._take(number, line)

    def add(self, found: Found) -> None:
        """
        Note what was found of a mutant; it is on disk when this returns.

        Raises:
            UsageError: the line cannot be written.
        """
        self._append(found.to_dict())
        self.done[found.name] = found

    def add_surveyed(self, surveyed: Surveyed) -> None:
        """Do so with what a seed reaches."""
        self._append(surveyed.to_dict())
        self.survey.done[surveyed.seed] = surveyed

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            append_line(self.path, line)
        except OSError as error:
            raise UsageError(
                f"{self.path}: {error.strerror}; expected a disk with room; make some, and start again: it goes on"
            ) from error

    def _take(self, number: int, line: Any) -> None:
        if number == 0:
            differs = _differing(line, self.about)
            if differs:
                raise UsageError(f"{self.path}: is of other {differs}; expected those of now; {AFRESH}")
            return
        try:
            if "surveyed" in line:
                surveyed = Surveyed.from_dict(line)
                self.survey.done[surveyed.seed] = surveyed
            else:
                found = Found.from_dict(line)
                self.done[found.name] = found
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{self.path}:{number + 1}: {error!r:.100}; expected a mutant or a seed; {AFRESH}"
            ) from error


def _differing(head: Any, about: Mapping[str, Any]) -> str:
    """Return in words what a journal's first line has otherwise, "" for nothing."""
    if not isinstance(head, dict):
        return "content"
    names = [name for name in {**head, **about} if head.get(name) != about.get(name)]
    return ", ".join(
        name if name == "sources" else f"{name} ({head.get(name)!r:.60}, not {about.get(name)!r:.60})"
        for name in names
    )
