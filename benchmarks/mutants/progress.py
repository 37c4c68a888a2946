"""The progress of the gauntlet: a line for each mutant that is done, and on a terminal what is searched now."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.search import Gauntlet
from benchmarks.mutants.tables import line

# The start of a mutant's process takes as long as so many seeds.
START_SEEDS: Final = 6


class GauntletProgress:
    """A context manager that shows how many are found so far, and how long the others will take."""

    def __init__(self, console: Console, gauntlet: Gauntlet, names: Iterable[str], done: Iterable[Found]) -> None:
        """Begin with all names of the selection, and what a journal has of them."""
        self._console = console
        self._gauntlet = gauntlet
        self._waiting = dict.fromkeys(names)
        self._all = len(self._waiting)
        self._found = self._missed = 0
        for each in done:
            self._count(each)
        self._seeds_done = 0
        self._began = time.monotonic()
        self._live = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._live.add_task("mutants", total=self._all, completed=self._found + self._missed)

    def __enter__(self) -> GauntletProgress:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def end(self, found: Found) -> None:
        """Show what became of a mutant."""
        self._count(found)
        self._seeds_done += START_SEEDS + found.played
        so_far = f"{self._found} found, {self._missed} not{self._to_go()}"
        self._console.print(
            f"{self._found + self._missed}/{self._all} {line(found)} [{so_far}]",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        now = " ".join(self._gauntlet.playing)
        self._live.update(self._task, description=f"{so_far}: {now}", completed=self._found + self._missed)

    def _count(self, found: Found) -> None:
        self._waiting.pop(found.name, None)
        if found.outcome is Outcome.FOUND:
            self._found += 1
        else:
            self._missed += 1

    def _to_go(self) -> str:
        """Return how long it takes if the seeds to come take as long as those so far."""
        seeds = sum(START_SEEDS + self._gauntlet.expected_seeds(name) for name in self._waiting)
        if not self._waiting or not self._seeds_done:
            return ""
        minutes = (time.monotonic() - self._began) / self._seeds_done * seeds / 60
        return f", about {minutes:.0f} min to go" if minutes >= 1 else ", less than a minute to go"
