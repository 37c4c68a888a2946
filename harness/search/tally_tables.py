"""The output of a search: a progress line, and at the end its findings, totals and speed."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from harness.model import ORACLES, VERDICT_OF, Kind, Verdict
from harness.search.tally import Tally
from targets.simulator.broker.coverage import REACHABLE

# The interval of progress lines if there is no terminal.
LINE_EVERY_S: Final = 30.0


class SearchProgress:
    """A context manager that shows a progress bar on a terminal, else a line at intervals."""

    def __init__(self, console: Console, seeds: int | None) -> None:
        """Prepare the display; seeds is the number of seeds, None if it is unknown."""
        self._console = console
        self._live = console.is_terminal
        self._seeds = seeds
        self._printed_s = time.monotonic()
        self._progress = Progress(
            TextColumn("seeds"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[about]}"),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._progress.add_task("seeds", total=seeds, about="")

    def __enter__(self) -> Self:
        """Start the display."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the display."""
        self._progress.stop()

    def step(self, tally: Tally) -> None:
        """Show the totals so far."""
        about = f"{tally.seeds_per_second:.0f} seeds/s per core, {len(tally.findings)} findings"
        self._progress.update(self._task, completed=tally.seeds, about=about)
        if not self._live and time.monotonic() - self._printed_s >= LINE_EVERY_S:
            self._printed_s = time.monotonic()
            say(self._console, f"[{tally.seeds:6}/{self._seeds or '?'}] {about}")


def print_tally(tally: Tally, console: Console, *, wall_s: float) -> None:
    """Print the findings by kind, the faults that were tried and took effect, and the totals of the search."""
    console.print(_findings(tally))
    console.print(_faults(tally))
    counts = ", ".join(f"{count} {verdict.name.lower()}" for verdict, count in sorted(tally.verdicts.items()))
    say(console, f"{tally.seeds} seeds: {counts}")
    done = (
        f"{tally.elections} elections, {tally.acked} records acknowledged by all, {tally.skipped} steps skipped "
        "as not applicable"
    )
    if tally.replicas_moved or tally.recreated:
        say(
            console,
            f"{tally.replicas_moved} replicas moved away, {tally.recreated} topics created again after a deletion",
        )
    if tally.polls:
        seconds = tally.virtual_s or tally.seconds or 1.0
        rates = (tally.polls, tally.records_read, tally.records_sent, tally.bytes_sent)
        texts = ("polls answered", "records read", "records acknowledged", "bytes acknowledged")
        per = ", ".join(f"{text} {rate / seconds:,.0f}" for text, rate in zip(texts, rates, strict=True))
        say(console, f"per second of {'virtual time' if tally.virtual_s else 'all runs'}: {per}")
    if tally.coverage:
        reached = REACHABLE & tally.coverage.keys()
        say(console, f"{len(reached)} of {len(REACHABLE)} kinds of events and effects of the core were reached")
        if never := sorted(REACHABLE - reached):
            say(console, f"never reached: {', '.join(never)}")
    if tally.steps:
        say(console, f"{done}, {tally.steps} steps, {tally.virtual_s:.0f} s of virtual time")
        say(console, f"{wall_s:.1f} s; {tally.seeds_per_second:.1f} seeds per second and core")
    else:  # only the simulator counts steps
        say(console, f"{done}; {wall_s:.1f} s, {tally.seconds / tally.seeds:.1f} s a seed")


def say(console: Console, line: str) -> None:
    """Print a line without markup, highlighting or wrapping."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _findings(tally: Tally) -> Table:
    table = Table(title="what was found", title_justify="left")
    table.add_column("found")
    table.add_column("is")
    table.add_column("seeds", justify="right")
    for kind in (*tally.oracles, *(kind for kind in Kind if kind not in ORACLES)):
        if tally.kinds[kind]:
            table.add_row(kind.value, VERDICT_OF[kind].name.lower(), str(tally.kinds[kind]))
    if not table.row_count:
        table.add_row("nothing", Verdict.VALID.name.lower(), str(tally.seeds))
    return table


def _faults(tally: Tally) -> Table:
    table = Table(title="what was done", title_justify="left")
    table.add_column("fault")
    table.add_column("tried", justify="right")
    table.add_column("bit", justify="right")
    for kind in sorted(tally.asked.keys() | tally.bit.keys()):
        table.add_row(kind, str(tally.asked[kind]), str(tally.bit[kind]))
    return table
