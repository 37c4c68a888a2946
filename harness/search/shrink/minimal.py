"""
Reduces a schedule to a minimal one: delta debugging over its steps, then one reducer after the other.

It knows nothing of runs: `Trials` says which candidate still shows the violation. At its end no single step can be
left out, and no reducer has a smaller form that shows it.

Source:  Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002 (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from harness.scenario.file import Scenario
from harness.search.random_runs import is_written
from harness.search.shrink.candidates import as_written, without, without_lines
from harness.search.shrink.trials import SpentError, Trials

# Returns smaller forms of a schedule, the smallest first.
Reducer: TypeAlias = Callable[[Scenario], Iterable[Scenario]]
# Steps that are left out of a written form because they failed in it, one after the other.
REPAIRS_MAX: Final = 12


class Ended(StrEnum):
    """Why a shrinking ended."""

    MINIMAL = "minimal"
    SPENT = "its tries or its time are spent"
    INTERRUPTED = "interrupted"


@dataclass(slots=True, kw_only=True)
class Minimiser:
    """
    Shrinks one schedule, which shows the violation.

    Attributes:
        best: the smallest schedule so far that shows it.
        reducers: tried in this order, each until it finds nothing smaller.
        try_written: whether a written form may show it too; it is preferred, since it needs no seed.
        on_best: called after each smaller schedule.
    """

    best: Scenario
    trials: Trials
    reducers: Sequence[Reducer]
    try_written: bool = True
    on_best: Callable[[Scenario], None] = lambda _: None

    def run(self) -> Ended:
        """Shrink `best` until nothing smaller is found; Ctrl-C and the limits of the trials keep what is found."""
        try:
            self._leave_out_skipped()
            self._write()
            before = None
            while before != self.best:
                before = self.best
                self._fewest_steps()
                for reducer in self.reducers:
                    while found := self.trials.first(reducer(self.best)):
                        self._accept(found[1])
        except SpentError:
            return Ended.SPENT
        except KeyboardInterrupt:
            return Ended.INTERRUPTED
        return Ended.MINIMAL

    def _accept(self, smaller: Scenario) -> None:
        self.best = smaller
        self.on_best(smaller)
        self._write()

    def _leave_out_skipped(self) -> None:
        """Leave out the steps that were not applicable, all at once."""
        skipped = self.trials.outcome(self.best).skipped
        if skipped and (found := self.trials.first([without_lines(self.best, skipped)])):
            self.best = found[1]
            self.on_best(self.best)

    def _write(self) -> None:
        """Turn a random schedule into a written one, without what fails in it, if that shows the violation too."""
        if not self.try_written or is_written(self.best):
            return
        candidate = as_written(self.best)
        for _ in range(REPAIRS_MAX):
            seen = self.trials.outcome(candidate)
            if seen.shows:
                self.best = candidate
                self.on_best(candidate)
                return
            smaller = without_lines(candidate, {seen.failed})
            if smaller == candidate:
                return
            candidate = smaller

    def _fewest_steps(self) -> None:
        """Leave out chunks of steps, from halves to single steps, until no single step can be left out."""
        size = max(1, len(self.best.steps) // 2)
        while True:
            removed = self._leave_out_chunks(size)
            if size == 1 and not removed:
                return
            size = max(1, size // 2)

    def _leave_out_chunks(self, size: int) -> bool:
        """Leave out each chunk of this size that is not needed; return True if there was one."""
        start, removed = 0, False
        while start < len(self.best.steps):
            places = range(start, len(self.best.steps), size)
            best = self.best
            found = self.trials.first(without(best, range(place, place + size)) for place in places)
            if found is None:
                break
            start, removed = places[found[0]], True
            self._accept(found[1])
        return removed
