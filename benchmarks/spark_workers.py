"""
Measure how much faster two Spark workers check a large run than one: `python -m benchmarks.spark_workers`.

A standalone cluster is started on loopback for each number of workers, one core each; the run, with one anomaly of
every sort, is checked on it more than once, so that the first check's warm-up is seen apart from the others. The
ratio of the best checks counts only on an idle machine with a core for each worker, one for the driver, and time
that others do not take.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.checkers import RECORDS_MAX, made
from benchmarks.cpu import load_average
from benchmarks.made.jobs import Job
from benchmarks.made.truth import read_truth, wrong
from benchmarks.standalone import standalone
from harness.ending import Parser, end, whole_number
from harness.java import find_java
from harness.model import Anomaly
from harness.run.store import Run
from harness.suite.spark_worker import spark_worker

WORKERS_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """
    What checks on one cluster took.

    Attributes:
        start_s: the start of Spark, with what is sent to executors.
        checks_s: each check of the run, in seconds.
        found: what the last one found.
    """

    workers: int
    start_s: float
    checks_s: tuple[float, ...]
    found: tuple[Anomaly, ...]

    @property
    def best_s(self) -> float:
        """The check that was disturbed least."""
        return min(self.checks_s)


def main(arguments: Sequence[str]) -> int:
    """Make a run, check it on each cluster, and print a table; return 1 if one found not just what was planted."""
    parser = Parser(
        prog="python -m benchmarks.spark_workers", description="Compare clusters of few Spark workers."
    )
    add = parser.add_argument
    add("--workers", type=whole_number(1, WORKERS_MAX), nargs="+", default=[1, 2], metavar="N")
    add(
        "--records", type=whole_number(3_000, RECORDS_MAX), default=10_000_000, metavar="N", help="replica records"
    )
    add("--partitions", type=whole_number(1, 1_000), default=8, metavar="N")
    add("--repeats", type=whole_number(1, 100), default=3, metavar="N", help="checks on each cluster")
    add("--memory", default="1g", metavar="SIZE", help="of an executor (default: 1g)")
    return end("benchmarks.spark_workers", lambda: _measure(parser.parse_args(arguments)))


def _measure(chosen: argparse.Namespace) -> int:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="fencepost-workers-") as text:
        folder = Path(text)
        run = Run(path=folder / "run")
        job = Job(records=chosen.records, partitions=chosen.partitions)
        with console.status("making the run"):
            made(job, run.path)
        taken = []
        for place, workers in enumerate(chosen.workers):
            with console.status(f"checking on {workers} of {chosen.workers} workers"):
                taken.append(_taken(folder / f"cluster-{place}", run.path, workers, chosen))
        truth = read_truth(run.path)
        mistakes = [line for each in taken for line in wrong(truth, each.found, job.batch)]
    for line in mistakes:
        console.print(line, highlight=False, markup=False)
    console.print(_table(taken))
    console.print(f"{chosen.records:,} records; load average {load_average():.1f}, {os.cpu_count()} cores")
    return 1 if mistakes else 0


def _taken(folder: Path, run: Path, workers: int, chosen: argparse.Namespace) -> Taken:
    java = find_java().home
    with standalone(folder, java, workers=workers, memory=chosen.memory) as cluster:
        options = cluster.options(spark__executor__memory=chosen.memory, short_lived=False)
        with spark_worker(java, options) as spark:
            began = time.monotonic()
            spark.check([])
            start_s = time.monotonic() - began
            checks, found = [], list[Anomaly]()
            for _ in range(chosen.repeats):
                began = time.monotonic()
                (found,) = spark.check([run]).values()
                checks.append(time.monotonic() - began)
    return Taken(workers=workers, start_s=start_s, checks_s=tuple(checks), found=tuple(found))


def _table(taken: Sequence[Taken]) -> Table:
    table = Table("workers", "start s", "first s", "best s", f"of {taken[0].workers}", "found")
    for each in taken:
        table.add_row(
            str(each.workers),
            f"{each.start_s:.1f}",
            f"{each.checks_s[0]:.1f}",
            f"{each.best_s:.1f}",
            f"{taken[0].best_s / each.best_s:.2f}",
            str(len(each.found)),
        )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
