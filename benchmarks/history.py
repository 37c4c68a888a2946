"""
Measure what a large history costs: `python -m benchmarks.history [--ops N …]`.

A process records the ops of a long run (benchmarks/made/ops.py) as fast as it can, in turn without and with the
follower that makes their tables (harness/tables/following.py); the ratio of the two times is what the follower
costs it. What comes after the history's end is the time until the tables are there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.cpu import load_average
from benchmarks.made.ops import run_of
from harness.ending import Parser, end, whole_number
from harness.history.file import History
from harness.model import FencepostError
from harness.tables.following import Following
from harness.tables.manifest import FOLDER
from harness.tables.writer import read_manifest

OPS: Final = 10_000_000
OPS_MAX: Final = 1_000_000_000
# What is asked of the follower.
RATIO_MAX: Final = 1.05
AFTER_S_MAX: Final = 30.0
PEAK_MB_MAX: Final = 500.0
_KIB: Final = 1_024
_MB: Final = 1_000_000
# How often a workload that is slower than it could be looks at the time.
_BURST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    What one process records.

    Attributes:
        rate: ops each second; 0 for as many as it can.
    """

    ops: int
    partitions: int
    rate: int
    followed: bool
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """
    What it took.

    Attributes:
        ops: how many were recorded.
        work_s: until the history was closed.
        work_cpu_s: the processor time of that.
        after_s: from then until the tables were there.
        follower_cpu_s: the processor time of the follower.
        peak_mb: the most memory that the follower had.
        lines_mb, tables_mb: the size of the history and of its tables.
    """

    ops: int
    work_s: float
    work_cpu_s: float
    after_s: float = 0.0
    follower_cpu_s: float = 0.0
    peak_mb: float = 0.0
    lines_mb: float = 0.0
    tables_mb: float = 0.0


def main(arguments: Sequence[str]) -> int:
    """Record histories, and print what each took."""
    parser = Parser(prog="python -m benchmarks.history", description="Measure what a large history costs.")
    add = parser.add_argument
    add("--ops", type=whole_number(1_000, OPS_MAX), default=OPS, metavar="N", help="ops of a history (10 M)")
    add("--partitions", type=whole_number(1, 1_000), default=1, metavar="N", help="of its topic (1)")
    add("--pairs", type=whole_number(1, 100), default=2, metavar="N", help="without and with, so often (2)")
    add(
        "--rate",
        type=whole_number(0, 1_000_000),
        default=0,
        metavar="N",
        help="ops recorded each second (0: as many as can be)",
    )
    add("--folder", type=Path, default=None, help="where the histories are written and removed (TMPDIR)")
    add("--work", help=argparse.SUPPRESS)
    return end("benchmarks.history", lambda: _measure(parser.parse_args(arguments)))


def _measure(options: argparse.Namespace) -> int:
    if options.work:
        print(json.dumps(asdict(work(Work(**json.loads(options.work))))))
        return 0
    console = Console()
    console.print(
        f"{options.ops:,} ops, {options.partitions} partitions, {os.cpu_count()} cores, load {load_average():.1f}",
        highlight=False,
    )
    pairs: list[tuple[Measured, Measured]] = []
    for number in range(options.pairs):
        # Which is first changes, because the second finds the machine as the first has left it.
        order = (False, True) if number % 2 == 0 else (True, False)
        found = {followed: _in_a_process(options, followed) for followed in order}
        pairs.append((found[False], found[True]))
        console.print(_row_text(*pairs[-1]), highlight=False)
    console.print(_table(pairs))
    return 0


def work(asked: Work) -> Measured:
    """
    Record a history, and wait for its tables.

    Raises:
        FencepostError: the tables do not have every op.
    """
    history = History(Path(asked.folder) / "history.jsonl")
    with Following(history) if asked.followed else nullcontext() as following:
        began, began_cpu = time.monotonic(), time.process_time()
        count = _record(history, asked)
        history.close()
        ended, cpu = time.monotonic(), time.process_time() - began_cpu
        if following is None:
            return Measured(ops=count, work_s=ended - began, work_cpu_s=cpu)
        following.finish()
        after = time.monotonic() - ended
    manifest = read_manifest(history.path)
    if manifest.ops != count or manifest.skips or manifest.irregular:
        raise FencepostError(f"{history.path}: {manifest.ops} ops in the tables; expected {count}, all regular")
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    tables = [path.stat().st_size for path in (history.path.parent / FOLDER).iterdir()]
    return Measured(
        ops=count,
        work_s=ended - began,
        work_cpu_s=cpu,
        after_s=after,
        follower_cpu_s=child.ru_utime + child.ru_stime,
        peak_mb=child.ru_maxrss * _KIB / _MB,
        lines_mb=manifest.size / _MB,
        tables_mb=sum(tables) / _MB,
    )


def _record(history: History, asked: Work) -> int:
    """Record all ops, no quicker than was asked; return how many they were."""
    count, began, never = 0, time.monotonic(), threading.Event()
    for process, type_, event in run_of(asked.ops, asked.partitions):
        history.record(process, type_, event)
        count += 1
        if asked.rate and count % _BURST == 0:
            never.wait(max(0.0, began + count / asked.rate - time.monotonic()))
    return count


def _in_a_process(options: argparse.Namespace, followed: bool) -> Measured:
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="history-") as folder:
        asked = Work(
            ops=options.ops,
            partitions=options.partitions,
            rate=options.rate,
            followed=followed,
            folder=folder,
        )
        argv = [sys.executable, "-m", "benchmarks.history", "--work", json.dumps(asdict(asked))]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise FencepostError(f"the workload ended with exit code {done.returncode}; expected 0; see above")
    return Measured(**json.loads(done.stdout))


def _row_text(alone: Measured, followed: Measured) -> str:
    """Return the figures of one pair."""
    return (
        f"{followed.ops / followed.work_s:,.0f} ops/s; alone {alone.work_s:.1f} s (CPU {alone.work_cpu_s:.1f} s), "
        f"followed {followed.work_s:.1f} s ({followed.work_cpu_s:.1f} s); tables {followed.after_s:.1f} s later, "
        f"by {followed.follower_cpu_s:.1f} s of CPU and {followed.peak_mb:.0f} MB of memory; "
        f"{followed.lines_mb:,.0f} MB of lines, {followed.tables_mb:,.0f} MB of Parquet"
    )


def _table(pairs: Sequence[tuple[Measured, Measured]]) -> Table:
    """Return the medians beside what is asked for, and whether that is reached."""
    table = Table("", "median", "lowest … highest", "goal", "")
    ratios = [followed.work_s / alone.work_s for alone, followed in pairs]
    of_cpu = [followed.work_cpu_s / alone.work_cpu_s for alone, followed in pairs]
    rows: list[tuple[str, list[float], float | None]] = [
        ("workload's time, followed / alone", ratios, RATIO_MAX),
        ("its processor time, likewise", of_cpu, RATIO_MAX),
        ("s from the history's end to its tables", [each.after_s for _, each in pairs], AFTER_S_MAX),
        ("MB of memory, at most", [each.peak_mb for _, each in pairs], PEAK_MB_MAX),
        (
            "µs of the follower's processor for an op",
            [1e6 * each.follower_cpu_s / each.ops for _, each in pairs],
            None,
        ),
    ]
    for name, found, goal in rows:
        median = statistics.median(found)
        reached = "" if goal is None else "reached" if median <= goal else "missed"
        span = f"{min(found):.3g} … {max(found):.3g}"
        table.add_row(name, f"{median:.3g}", span, "" if goal is None else f"{goal:g}", reached)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
