"""What a night shows while it is at work: one live line on a terminal, else a line for each unit that ends."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from harness.model import Verdict
from harness.night.count import Count
from harness.night.schedule import Unit
from harness.report.text import plural
from harness.run.result import RunResult
from harness.search.tally_tables import say


class NightProgress:
    """A context manager that shows how far a night is; only the main thread uses it."""

    def __init__(self, console: Console, units: int, findings: int) -> None:
        """Prepare the display of a night of so many units, which has found so much already."""
        self._console = console
        self._units = units
        self._findings = findings
        self._runs = 0
        self._about = ""
        self._left_s: Callable[[], float] = float
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("night", total=None)

    def __enter__(self) -> Self:
        """Start the display."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the display."""
        self._progress.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        say(self._console, text)

    def begin(self, unit: Unit, runs: int, left_s: Callable[[], float]) -> None:
        """Show that a unit begins, of which so many runs are done; left_s tells how much of the night is left."""
        self._runs, self._left_s = runs, left_s
        self._about = f"unit {unit.number} of {self._units}: {unit.role} {unit.line}"
        self._show()

    def saw(self, result: RunResult, *, counts: bool) -> None:
        """Show that a run was judged; `counts` is False where a violation is what is wanted."""
        self._runs += 1
        self._findings += counts and result.is_finding and result.verdict >= Verdict.HANG
        self._show()

    def end(self, unit: Unit, count: Count, problem: str) -> None:
        """Print what a unit showed."""
        verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(count.verdicts.items()))
        self.say(
            f"[{unit.number:3}/{self._units}] {unit.role} {unit.line}: {plural(count.runs, 'run')}"
            f"{f' ({verdicts})' if verdicts else ''}{f'; {problem}' if problem else ''}; "
            f"{_clock(self._left_s())} left"
        )

    def _show(self) -> None:
        self._progress.update(
            self._task,
            description=(
                f"{self._about} · {plural(self._runs, 'seed')} · {plural(self._findings, 'finding')} so far · "
                f"{_clock(self._left_s())} left"
            ),
        )


def _clock(seconds: float) -> str:
    minutes = max(0, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
