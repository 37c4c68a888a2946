"""
The stored progress of a long comparison: its options, and the seeds played so far; each line is durable.

    FOLDER/conform.json        the options of the comparison
    FOLDER/rounds.jsonl        a line for each seed played on one side: side, seed, run, commit, seconds
    FOLDER/play-1, play-2 …    the runs, a folder for each start of the comparison

An interrupted comparison continues where it ended: a seed that has a line is not played again. A line torn by a
kill is dropped, and its seed is played again. Verdicts are not stored: they follow from the runs' histories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from harness.durable_lines import append_line, read_lines
from harness.model import UsageError
from harness.run.store import Run, SuiteDir, unique_folder

HEAD: Final = "conform.json"
LINES: Final = "rounds.jsonl"
SUITE_FOLDER: Final = "play-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedSeed:
    """
    A seed that was played on one side.

    Attributes:
        side: "ours" or "theirs".
        run: the run's folder, relative to the comparison's.
        commit: the commit of the harness.
    """

    side: str
    seed: int
    run: str
    commit: str
    seconds: float


class PairingProgress:
    """The progress stored in a folder, by side and seed."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """
        Open the progress in the folder, or begin a new one.

        Raises:
            UsageError: the folder has a comparison with other options, or is not writable.
        """
        self.folder = folder
        self.played: dict[tuple[str, int], PlayedSeed] = {}
        head = folder / HEAD
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not head.exists():
                head.write_text(json.dumps(dict(about), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{folder}: {error.strerror}; expected a folder that can be written; name another (--results)"
            ) from error
        found = json.loads(head.read_text(encoding="utf-8"))
        if found != dict(about):
            raise UsageError(
                f"{head}: compares {found}, and asked for is {dict(about)}; expected the same; "
                "name another folder (--results), or move this one away"
            )
        self._read()

    def begin_suite(self) -> SuiteDir:
        """Create and return the folder for the runs that are played from now on."""
        number = 1 + len(list(self.folder.glob(f"{SUITE_FOLDER}*")))
        return SuiteDir(path=unique_folder(self.folder, f"{SUITE_FOLDER}{number}"))

    def has(self, side: str, seed: int) -> bool:
        """Return True if that seed was played on that side."""
        return (side, seed) in self.played

    def add(self, played: PlayedSeed) -> None:
        """Record that a seed was played; the line is on disk when this returns."""
        self.played[played.side, played.seed] = played
        append_line(self.folder / LINES, asdict(played))

    def run_of(self, played: PlayedSeed) -> Run:
        """Return the seed's run."""
        return Run(path=self.folder / played.run)

    def _read(self) -> None:
        for line in read_lines(self.folder / LINES):
            played = PlayedSeed(**line)
            self.played[played.side, played.seed] = played
