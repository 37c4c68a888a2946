"""
The logbook of a long comparison: what is compared, and which rounds were played, durable line by line.

    FOLDER/conform.json        what is compared
    FOLDER/rounds.jsonl        a line for each round that was played: side, seed, run, commit, seconds
    FOLDER/play-1, play-2 …    the runs of each sitting

Rules:   a comparison that was cut off goes on where it ended: a round that has a line is not played again.
         A line that a kill has torn is dropped, and its round is played again.
         No verdict is kept: it follows from the run's history, by the checkers as they are when it is asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from harness.model import UsageError
from harness.store import RunDir, SuiteDir

HEAD: Final = "conform.json"
LINES: Final = "rounds.jsonl"
SITTING: Final = "play-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    A round that was played.

    Shapes:  side is "ours" or "theirs"; run is its folder below the logbook's; commit is what was played.
    """

    side: str
    seed: int
    run: str
    commit: str
    seconds: float


class Logbook:
    """The logbook in a folder: entries by side and seed."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """
        Open it, or begin one.

        Raises:  UsageError when the folder holds a comparison of something else, or cannot be written.
        """
        self.folder = folder
        self.entries: dict[tuple[str, int], Entry] = {}
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

    def begin_sitting(self) -> SuiteDir:
        """Make the folder of what is played from now on."""
        number = 1 + len(list(self.folder.glob(f"{SITTING}*")))
        sitting = self.folder / f"{SITTING}{number}"
        sitting.mkdir()
        return SuiteDir(path=sitting)

    def has(self, side: str, seed: int) -> bool:
        """Whether that round was played."""
        return (side, seed) in self.entries

    def add(self, entry: Entry) -> None:
        """Keep that a round was played; it is on the disk when this returns."""
        self.entries[entry.side, entry.seed] = entry
        with (self.folder / LINES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry), separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def run_of(self, entry: Entry) -> RunDir:
        """Where its run is kept."""
        return RunDir(path=self.folder / entry.run)

    def _read(self) -> None:
        path = self.folder / LINES
        if not path.exists():
            return
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            os.truncate(path, len(whole))
        for line in whole.decode("utf-8").splitlines():
            entry = Entry(**json.loads(line))
            self.entries[entry.side, entry.seed] = entry
