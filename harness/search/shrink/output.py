"""What a shrinking prints: a line of progress, and at the end what is left and what it still shows."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from harness.model import UsageError
from harness.scenario.file import Scenario
from harness.search.random_runs import is_written
from harness.search.shrink.minimal import Ended
from harness.search.shrink.shrink import Shrunk
from harness.search.shrink.steady import RUNS
from harness.search.tally_tables import say

# The interval of progress lines if there is no terminal.
LINE_EVERY_S: Final = 10.0


class ShrinkProgress:
    """A context manager that shows a changing line on a terminal, else a line at intervals."""

    def __init__(self, console: Console, steps: int) -> None:
        """Prepare the display for a schedule of so many steps."""
        self._console = console
        self._steps = steps
        self._printed_s = time.monotonic()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("shrinking")

    def __enter__(self) -> Self:
        """Start the display."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the display."""
        self._progress.stop()

    def step(self, tries: int, best: Scenario) -> None:
        """Show the tries, and how many steps are left."""
        about = f"shrinking: {self._steps} steps, now {len(best.steps)}, {tries} tries"
        self._progress.update(self._task, description=about)
        if not self._console.is_terminal and time.monotonic() - self._printed_s >= LINE_EVERY_S:
            self._printed_s = time.monotonic()
            say(self._console, about)


def summary_of(shrunk: Shrunk) -> str:
    """Return one line: steps before and after, tries, seconds, and whether anything smaller may be left."""
    form = "as a written scenario" if is_written(shrunk.scenario) else "with the latencies of its seed"
    early = "" if shrunk.ended is Ended.MINIMAL else f"; perhaps not minimal: {shrunk.ended.value}"
    if shrunk.steady is not None:
        form += f", the same in {shrunk.steady} of {RUNS} slowed runs"
    return (
        f"shrunk from {shrunk.steps_before} steps to {len(shrunk.scenario.steps)}, {form}: "
        f"{shrunk.tries} tries, {shrunk.seconds:.1f} s{early}"
    )


def write_shrunk(shrunk: Shrunk, path: Path) -> None:
    """Write the shrunk schedule; raise UsageError if the file cannot be written."""
    try:
        path.write_text(shrunk.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a file that can be written (--output)") from error
