"""The progress of a suite: a live line for each current run on a terminal, else a line for each finished run."""

from __future__ import annotations

import threading
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class RunProgress:
    """A context manager that shows the progress; thread-safe."""

    def __init__(self, console: Console, runs: int, unit: str = "runs") -> None:
        self._console = console
        self._live = console.is_terminal
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._done = 0
        self._runs = runs
        self._unit = unit
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._total = self._progress.add_task(unit, total=runs)

    def __enter__(self) -> RunProgress:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def begin(self, name: str) -> None:
        """Show that a run begins."""
        with self._lock:
            self._tasks[name] = self._progress.add_task(f"  {name}", total=None)

    def step(self, name: str, text: str) -> None:
        """Show the current step of a run."""
        if name in self._tasks:
            self._progress.update(self._tasks[name], description=f"  {name}: {text}")

    def end(self, name: str, seconds: float, failure: str = "") -> None:
        """Show that a run has ended; a failure is also printed on a terminal."""
        with self._lock:
            self._done += 1
            self._progress.advance(self._total)
            if name in self._tasks:
                self._progress.remove_task(self._tasks.pop(name))
            if not self._live or failure:
                elapsed = time.monotonic() - self._began
                what = f"failed after {seconds:.1f} s: {failure}" if failure else f"played in {seconds:.1f} s"
                self._console.print(
                    f"[{self._done:3}/{self._runs}] {elapsed:6.1f} s  {name} {what}",
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )
