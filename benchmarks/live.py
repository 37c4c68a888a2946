"""
Measure what the live check costs: `python -m benchmarks.live [--records N] [--repeats K]`.

It prints how many ops a second the live check follows alone, and how much longer it takes to record a run with it,
in memory and into a file, as a ratio. All are processor time of one thread. A ratio is taken within a repeat, in
which the two were measured one after the other, and the table has the medians.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.long_run import Said, events, long_run
from checkers.live.watch import LiveCheck
from harness.ending import Parser, end, whole_number
from harness.history.file import History
from harness.history.memory import MemoryHistory
from harness.scenario.stop import Stop

RECORDS_MAX: Final = 10_000_000
REPEATS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """
    One repeat.

    Attributes:
        ops: how many ops were followed.
        alone_s: the time in which the live check followed them.
        early, late: ops a second in the first and in the last fifth of them.
        in_memory, in_file: the time of recording with the live check over the time without it.
        entries: how many entries it remembered at the end.
    """

    ops: int
    alone_s: float
    early: float
    late: float
    in_memory: float
    in_file: float
    entries: int


def measure(records: int, folder: Path) -> Measured:
    """Measure a run of this many records once; the histories are deleted."""
    ops = list(long_run(records))
    fifth, watch, took = len(ops) // 5, LiveCheck(), list[float]()
    for part in range(5):
        mine = ops[part * fifth : (part + 1) * fifth if part < 4 else None]
        took.append(_timed(lambda mine=mine: [watch.step(op) for op in mine]))  # type: ignore[misc]
    said = list(events(records))
    return Measured(
        ops=len(ops),
        alone_s=sum(took),
        early=fifth / took[0],
        late=(len(ops) - 4 * fifth) / took[4],
        in_memory=_ratio(said, lambda name: MemoryHistory(folder / name)),
        in_file=_ratio(said, lambda name: History(folder / name)),
        entries=watch.entries,
    )


def _ratio(said: Sequence[Said], open_history: Callable[[str], History]) -> float:
    """Return the time of recording with the live check, over the time without it."""

    def recorded(history: History) -> float:
        try:
            return _timed(lambda: [history.record(*each) for each in said])
        finally:
            history.close()
            history.path.unlink(missing_ok=True)

    without = recorded(open_history("without"))
    history = open_history("with")
    history.listeners.append(Stop(LiveCheck()).listen)
    return recorded(history) / without


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def table_of(repeats: Sequence[Measured]) -> Table:
    """Return the medians of the repeats as a table."""

    def of(take: Callable[[Measured], float]) -> float:
        return median(take(each) for each in repeats)

    table = Table(title=f"the live check over {repeats[0].ops:,} ops, medians of {len(repeats)}")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, text in (
        ("ops/s alone", f"{of(lambda m: m.ops / m.alone_s):,.0f}"),
        ("ops/s in the first fifth", f"{of(lambda m: m.early):,.0f}"),
        ("ops/s in the last fifth", f"{of(lambda m: m.late):,.0f}"),
        ("recording in memory, with / without", f"{of(lambda m: m.in_memory):.2f}"),
        ("recording into a file, with / without", f"{of(lambda m: m.in_file):.2f}"),
        ("entries remembered at the end", f"{of(lambda m: m.entries):,.0f}"),
    ):
        table.add_row(name, text)
    return table


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table."""
    parser = Parser(prog="python -m benchmarks.live", description="Measure what the live check costs.")
    records, repeats = whole_number(100, RECORDS_MAX), whole_number(1, REPEATS_MAX)
    parser.add_argument("--records", type=records, default=30_000, help="records of the run (default: 30000)")
    parser.add_argument("--repeats", type=repeats, default=5, help="how often (default: 5)")
    return end("benchmarks.live", lambda: _measure(parser.parse_args(arguments)))


def _measure(chosen: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        repeats = [measure(chosen.records, Path(folder)) for _ in range(chosen.repeats)]
    Console().print(table_of(repeats))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
