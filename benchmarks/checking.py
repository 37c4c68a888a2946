"""
Measure how long Spark takes to start, to warm up and to check a suite: `python -m benchmarks.checking [RUNS]
[SUITE]`.

The runs are the checkers' golden histories, repeated, or those of a suite's folder in results/. Wall times are
only meaningful on an idle machine; processor times nearly always are.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.cpu import child_with, cpu_seconds, load_average
from checkers import CHECKERS
from checkers.spark.runs import check_runs
from checkers.spark.session import archive_options, spark_session
from checkers.spark.warm import warm_up
from harness.ending import Parser, end, whole_number
from harness.java import executable_of, find_java
from harness.model import UsageError
from harness.run.store import create_suite
from tests.checkers.golden import FOLDER

RUNS: Final = 200
RUNS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The duration of a step: wall time, and processor time of Spark's Java."""

    name: str
    wall_s: float
    cpu_s: float


class Steps:
    """Measures the steps of one process, which has one Java."""

    def __init__(self) -> None:
        self.done: list[Step] = []
        self._wall, self._cpu = time.monotonic(), 0.0

    def end(self, name: str) -> None:
        """Record a step that ends now."""
        wall, java = time.monotonic(), child_with("org.apache.spark")
        cpu = cpu_seconds([java]) if java is not None else self._cpu
        self.done.append(Step(name=name, wall_s=wall - self._wall, cpu_s=cpu - self._cpu))
        self._wall, self._cpu = wall, cpu


def main(arguments: Sequence[str]) -> int:
    """Start Spark twice, once to check cold and once to check warm, and print the duration of each step."""
    parser = Parser(prog="python -m benchmarks.checking", description="Measure how long Spark checks a suite.")
    parser.add_argument("runs", nargs="?", type=whole_number(1, RUNS_MAX), default=RUNS, metavar="RUNS")
    parser.add_argument("suite", nargs="?", type=Path, metavar="SUITE", help="a suite's folder: results/SUITE")
    return end("benchmarks.checking", lambda: _measure(parser.parse_args(arguments)))


def _measure(chosen: argparse.Namespace) -> int:
    count = chosen.runs
    found = sorted(chosen.suite.glob("*/history.jsonl") if chosen.suite else FOLDER.glob("*.jsonl"))
    if not found:
        raise UsageError(f"{chosen.suite or FOLDER}: no history there; expected a suite's folder")
    java = find_java()
    archive = "with" if archive_options(executable_of(java.home)) else "without"
    title = f"{count} runs, Java {java.version} {archive} class archive"
    table = Table("step", "wall s", "Java's CPU s", title=title)
    with tempfile.TemporaryDirectory() as folder:
        paths = _suite(Path(folder), found, count)
        for warm in (False, True):
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                for step in pool.submit(steps_of, java.home, paths, warm=warm).result():
                    table.add_row(step.name, f"{step.wall_s:.1f}", f"{step.cpu_s:.1f}")
    console = Console()
    console.print(table)
    console.print(f"load average {load_average():.1f}")
    return 0


def steps_of(java_home: Path, paths: Sequence[Path], *, warm: bool) -> list[Step]:
    """Start Spark in this process, check twice, and return the steps."""
    steps = Steps()
    with spark_session(java_home) as session:
        steps.end("session")
        if warm:
            warm_up(session)
            steps.end("warming up")
        for name in ("first check", "second check"):
            check_runs(session, paths, CHECKERS)
            steps.end(name)
    return steps.done


def _suite(folder: Path, histories: Sequence[Path], count: int) -> list[Path]:
    """Store so many runs, repeating the histories; return their folders."""
    suite = create_suite(folder, "suite")
    paths: list[Path] = []
    for number, history in enumerate(islice(cycle(histories), count)):
        run = suite.create_run(f"run-{number:04}")
        shutil.copy(history, run.history)
        paths.append(run.path)
    return paths


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
