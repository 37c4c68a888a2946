"""
Measure how long Spark checks large runs, and what it needs: `python -m benchmarks.checkers [--records N …]`.

Each run is made with one anomaly of every sort (benchmarks/made), checked in a process of its own, and must show
these and no others. DuckDB folds the same files in the same run, if it is installed: what the first of Spark's
looks does, without the rest of the check. Wall times are only meaningful on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import load_average
from benchmarks.duckdb_folds import seconds
from benchmarks.made.history import Maker, Shape
from benchmarks.made.plants import PLANTS, Plant
from checkers import CHECKERS
from checkers.checker import check
from checkers.spark.assemble import assemble
from checkers.spark.runs import check_runs, need_quick_queries, selected
from checkers.spark.session import spark_session
from harness.ending import Parser, end, whole_number
from harness.java import find_java
from harness.model import Anomaly, Kind, UsageError
from harness.run.store import Run
from harness.tables.schema import Manifest

REPLICAS: Final = 3
RECORDS_MAX: Final = 1_000_000_000
_RECORDS: Final = (1_000_000, 10_000_000)
_LOOK_S: Final = 0.05
# A rule that takes less is among others.
_SHOWN_S: Final = 0.005
_SHORT: Final = "short"
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """
    A run that is made and checked.

    Attributes:
        records: replica records.
        everywhere: one divergence in each bucket of 4,096 offsets, and no other anomaly.
    """

    records: int
    partitions: int
    batch: int
    unanswered: float
    everywhere: bool

    @property
    def sends(self) -> int:
        """The produces of one partition."""
        return max(1_000, self.records // REPLICAS // self.partitions)

    @property
    def plants(self) -> tuple[Plant, ...]:
        """One anomaly of each sort, each in its own place."""
        if self.everywhere:
            places = range(1_000, self.sends, 4_096)
            return tuple(
                Plant(name="diverged", number=place, partition=part)
                for part in range(self.partitions)
                for place in places
            )
        step = self.sends // (len(PLANTS) + 2)
        return tuple(
            # A log that ends early is planted at its end.
            Plant(
                name=name,
                number=self.sends - 50 if name == _SHORT else step * place,
                partition=place % self.partitions,
            )
            for place, name in enumerate(PLANTS, start=1)
        )

    def __str__(self) -> str:
        where = "one partition" if self.partitions == 1 else f"{self.partitions} partitions"
        return f"{self.records / 1e6:g} M, {where}, batches of {self.batch}" + (
            ", all buckets dirty" if self.everywhere else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What a check took.

    Attributes:
        start_s: the start of Spark, in seconds.
        check_s: the check, in seconds.
        peak_mib: the most memory that all processes had together, in MiB.
        duckdb_s: DuckDB's folds of the same files, None if it is not installed.
        rules: how long each rule takes, in seconds; nothing if that was not asked for.
        wrong: plants that were not found, and findings that were not planted.
    """

    start_s: float
    check_s: float
    peak_mib: float
    duckdb_s: float | None
    wrong: list[str] = field(default_factory=list)
    rules: dict[str, float] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Make and check the runs, and print a table; return 1 if not exactly what was planted was found."""
    parser = Parser(prog="python -m benchmarks.checkers", description="Measure how long Spark checks large runs.")
    add = parser.add_argument
    count = whole_number(3_000, RECORDS_MAX)
    add("--records", type=count, nargs="+", default=list(_RECORDS), metavar="N", help="replica records of a run")
    add("--partitions", type=whole_number(1, 1_000), nargs="+", default=[1], metavar="N")
    add(
        "--batch",
        type=whole_number(1, 10_000),
        nargs="+",
        default=[3, 100],
        metavar="N",
        help="records of a batch",
    )
    add(
        "--unanswered",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="of produces without an answer (default: 0.01)",
    )
    add(
        "--everywhere",
        action="store_true",
        help="one divergence in each 4,096 offsets, instead of one of each sort",
    )
    add("--rules", action="store_true", help="print how long each rule takes with what is selected for it")
    add(
        "--folder", type=Path, metavar="FOLDER", help="where to make the runs, one after another (default: TMPDIR)"
    )
    return end("benchmarks.checkers", lambda: _measure(parser.parse_args(arguments)))


def _measure(chosen: argparse.Namespace) -> int:
    if chosen.folder is not None and not chosen.folder.is_dir():
        raise UsageError(f"{chosen.folder}: no such folder; expected one with room for 60 bytes a record")
    console, wrong = Console(), 0
    java = find_java()
    table = Table("M", "parts", "batch", "start s", "check s", "records/s", "peak MiB", "DuckDB s", "ratio")
    for records in chosen.records:
        for partitions in chosen.partitions:
            for batch in chosen.batch:
                job = Job(
                    records=records,
                    partitions=partitions,
                    batch=batch,
                    unanswered=chosen.unanswered,
                    everywhere=chosen.everywhere,
                )
                with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
                    with console.status(f"making {job}"):
                        _make(job, Path(folder))
                    with console.status(f"checking {job}"):
                        outcome = _checked(job, Path(folder), java.home, rules=chosen.rules)
                table.add_row(*_cells(job, outcome))
                if outcome.rules:
                    slow = {name: spent for name, spent in outcome.rules.items() if spent >= _SHOWN_S}
                    slow["all others"] = sum(outcome.rules.values()) - sum(slow.values())
                    longest = sorted(slow.items(), key=lambda rule: -rule[1])
                    console.print(f"{job}: " + ", ".join(f"{name} {spent:.2f} s" for name, spent in longest))
                wrong += len(outcome.wrong)
                for text in outcome.wrong:
                    console.print(f"{job}: {text}", highlight=False, markup=False)
    console.print(table)
    console.print(f"load average {load_average():.1f}, {os.cpu_count()} cores")
    return 1 if wrong else 0


def _cells(job: Job, outcome: Outcome) -> list[str]:
    duckdb = outcome.duckdb_s
    return [
        f"{job.records / 1e6:g}",
        str(job.partitions),
        str(job.batch),
        f"{outcome.start_s:.1f}",
        f"{outcome.check_s:.1f}",
        f"{job.records / outcome.check_s:,.0f}",
        f"{outcome.peak_mib:,.0f}",
        "-" if duckdb is None else f"{duckdb:.1f}",
        "-" if duckdb is None else f"{outcome.check_s / duckdb:.1f}",
    ]


def _make(job: Job, folder: Path) -> None:
    # Whole stretches, so that the last one is not too short for a plant at its end.
    stretch = -(-job.sends // max(4, job.sends // 600_000))
    shape = Shape(
        sends=job.sends,
        partitions=job.partitions,
        batch=job.batch,
        unanswered=job.unanswered,
        stretch=stretch,
        plants=job.plants,
    )
    with _in_another_process() as pool:
        pool.submit(_made, shape, Run(path=folder).tables).result()


def _made(shape: Shape, folder: Path) -> None:
    Maker(shape).make(folder)


def _checked(job: Job, folder: Path, java_home: Path, *, rules: bool) -> Outcome:
    with _in_another_process() as pool, _peak() as peak:
        found, start_s, check_s = pool.submit(_check, folder, java_home).result()
    with _in_another_process() as pool:
        duckdb_s = pool.submit(seconds, Run(path=folder).tables).result() if find_spec("duckdb") else None
    spent: dict[str, float] = {}
    if rules:
        with _in_another_process() as pool:
            spent = pool.submit(_rules, folder, java_home).result()
    return Outcome(
        start_s=start_s,
        check_s=check_s,
        peak_mib=peak[0],
        duckdb_s=duckdb_s,
        wrong=_wrong(job, found),
        rules=spent,
    )


def _check(folder: Path, java_home: Path) -> tuple[list[Anomaly], float, float]:
    began = time.monotonic()
    with spark_session(java_home, large=need_quick_queries([folder])) as session:
        up = time.monotonic()
        (found,) = check_runs(session, [folder], CHECKERS).values()
        return found, up - began, time.monotonic() - up


def _rules(folder: Path, java_home: Path) -> dict[str, float]:
    """Return how long each rule takes in all partitions together, with what Spark selects for it, in seconds."""
    run = Run(path=folder)
    manifest = Manifest.read(run.tables)
    spent = dict.fromkeys(CHECKERS, 0.0)
    with spark_session(java_home) as session:
        parts, rows, about = selected(session, {folder: manifest})
        collected = rows.toArrow()
    for part in parts:
        mine = collected.filter(pc.equal(collected.column("part"), part.part)).to_pylist()
        ops = assemble(mine, about[part.key])
        for name, checker in CHECKERS.items():
            began = time.monotonic()
            check(ops, {name: checker})
            spent[name] += time.monotonic() - began
    return spent


def _wrong(job: Job, found: Sequence[Anomaly]) -> list[str]:
    """Return the plants that were not found, and the findings that were not planted."""
    expected = {(plant.partition, kind) for plant in job.plants for kind in PLANTS[plant.name].kinds}
    shown = {(each.partition, each.kind) for each in found}
    wrong = [f"{kind} of partition {partition} was not found" for partition, kind in sorted(expected - shown)]
    wrong += [f"{kind} of partition {partition} was not planted" for partition, kind in sorted(shown - expected)]
    if job.everywhere:
        places = {(each.partition, each.ranges) for each in found if each.kind is Kind.DIVERGED}
        wrong += (
            [f"{len(places)} divergences; expected {len(job.plants)}"] if len(places) != len(job.plants) else []
        )
    return wrong


# --- processes -------------------------------------------------------------------------------------------------
def _in_another_process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"))


@contextmanager
def _peak() -> Iterator[list[float]]:
    """Yield a list whose only number is the most memory in MiB that our processes, but this one, had together."""
    peak, over = [0.0], threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            peak[0] = max(peak[0], sum(map(_resident, _descendants())) / _KIB)

    thread = threading.Thread(target=look, name="memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        fields = _text(Path(f"/proc/{name}/stat")).rpartition(")")[2].split()
        if len(fields) > 1:
            children.setdefault(int(fields[1]), []).append(int(name))
    found, left = [], [os.getpid()]
    while left:
        theirs = children.get(left.pop(), [])
        found += theirs
        left += theirs
    return found


def _resident(pid: int) -> int:
    """Return the memory of a process in KiB, what it shares with others in parts."""
    for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # it has ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
