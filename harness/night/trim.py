"""
The folders of a night's runs: what passed is trimmed, what failed is kept whole, and all of it is bounded.

    results/nights/NIGHT/playing/UNIT/RUN    a run that is being played
    results/nights/NIGHT/findings/UNIT/RUN   one with a finding, whole
    results/nights/NIGHT/passed/UNIT/RUN     one that passed: its schedule, its history, what was found

If all nights together are larger than the bound, runs that passed are deleted first, the oldest before the others,
then the findings of earlier nights, and at last those of this one. Whatever is deleted is told.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.cleanup import mounts
from harness.run.store import Run, SuiteDir
from harness.tables.manifest import FOLDER as TABLES

PLAYING: Final = "playing"
FINDINGS: Final = "findings"
PASSED: Final = "passed"
# What is left of a run that passed: enough to judge it again, and to play it again.
_KEPT: Final = frozenset({"history.jsonl", "schedule.txt", "anomalies.json", TABLES})
_BLOCK: Final = 512


@dataclass(slots=True)
class Shelf:
    """
    The folders of the runs of all nights, for the night that this process plays.

    Attributes:
        nights: the folder of all nights.
        night: the name of this one.
        bytes_max: what all of them may take.
        tell: called with each folder that was deleted, below `nights`, and its size.
    """

    nights: Path
    night: str
    bytes_max: int
    tell: Callable[[str, int], None]
    _bytes: int = field(default=-1)

    def playing(self, unit: str) -> SuiteDir:
        """Return the folder in which a unit's runs are played; it is there."""
        path = self._here / PLAYING / unit
        path.mkdir(parents=True, exist_ok=True)
        return SuiteDir(path=path)

    def place(self, unit: str, run: str, *, finding: bool) -> str:
        """Return where a run will be kept, below the night's folder."""
        return f"{FINDINGS if finding else PASSED}/{unit}/{run}"

    def playing_path(self, place: str) -> Path:
        """Return where a run was played that is kept at this place."""
        return self._here / PLAYING / Path(*Path(place).parts[1:])

    def keep(self, run: Run, place: str) -> bool:
        """
        Move a run to the place at which it is kept, trimmed if it passed; return False if it must stay.

        One in which a filesystem is still mounted stays where it is: the next run takes that down.
        """
        if mounts.mounts_below(run.path):
            return False
        if place.startswith(PASSED):
            _trim(run.path)
        kept = self._here / place
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        run.path.rename(kept)
        if self._bytes >= 0:
            self._bytes += _size(kept)
        self.bound()
        return True

    def drop(self, path: Path) -> None:
        """Delete a folder of this night, but none in which a filesystem is still mounted."""
        if not mounts.mounts_below(path):
            shutil.rmtree(path, ignore_errors=True)

    def clear(self) -> None:
        """Delete what killed sessions have left of runs that they did not end."""
        playing = self._here / PLAYING
        for unit in sorted(playing.iterdir()) if playing.is_dir() else ():
            for path in sorted(unit.iterdir()):
                self.drop(path)
            self.drop(unit)
        with suppress(OSError):  # something is still mounted in it, or nothing was played
            playing.rmdir()

    def bound(self) -> None:
        """Delete runs until all nights together are within the bound."""
        if self._bytes < 0:
            self._bytes = _size(self.nights)
        if self._bytes <= self.bytes_max:
            return
        for path in [*self._runs(PASSED), *self._runs(FINDINGS)]:
            if self._bytes <= self.bytes_max:
                return
            self._remove(path)

    def make_room(self) -> bool:
        """Delete the oldest run that passed; return False if there is none: no finding is deleted for a line."""
        path = next(self._runs(PASSED), None)
        if path is not None:
            self._remove(path)
        return path is not None

    def _remove(self, path: Path) -> None:
        size = _size(path)
        shutil.rmtree(path, ignore_errors=True)
        self._bytes = max(0, self._bytes - size) if self._bytes >= 0 else -1
        self.tell(str(path.relative_to(self.nights)), size)

    def _runs(self, what: str) -> Iterator[Path]:
        """Yield the folders of runs, those of the oldest night first, each night's in the order of its units."""
        nights = sorted(path for path in self.nights.iterdir() if path.is_dir() and not path.is_symlink())
        for night in nights:
            units = night / what
            for unit in sorted(units.iterdir()) if units.is_dir() else ():
                yield from sorted(unit.iterdir())

    @property
    def _here(self) -> Path:
        return self.nights / self.night


def _trim(path: Path) -> None:
    for each in path.iterdir():
        if each.name in _KEPT:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


def _size(path: Path) -> int:
    """Return what a folder takes on the disk, in bytes: a sparse file takes what is written of it."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * _BLOCK
            except OSError:
                continue  # it has just been replaced
    return total
