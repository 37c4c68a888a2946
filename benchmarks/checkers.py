"""
Measure how long Spark checks large runs, and what it needs: `python -m benchmarks.checkers [--records N …]`.

Each run is made with one anomaly of every sort (benchmarks/made), checked in a process of its own, and must show
these and no others. DuckDB searches the same files in the same run for lost and diverged records, if it is
installed (benchmarks/duckdb_search.py); the check does that, and applies every rule to all evidence. Wall times
are only meaningful on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.cpu import load_average
from benchmarks.duckdb_search import Searched, searched
from benchmarks.made.history import Maker
from benchmarks.made.jobs import STANDARD, Job
from benchmarks.made.truth import Planted, read_truth, write_truth, wrong
from checkers import CHECKERS
from checkers.checker import check
from checkers.spark.assemble import assemble
from checkers.spark.reading import Key, opened
from checkers.spark.runs import check_runs, selected
from checkers.spark.scan import Tables
from checkers.spark.session import spark_session
from harness.ending import Parser, end, whole_number
from harness.java import find_java
from harness.model import Anomaly, UsageError
from harness.run.store import Run
from harness.tables.manifest import Manifest

RECORDS_MAX: Final = 1_000_000_000
_LOOK_S: Final = 0.05
# A rule that takes less is among others.
_SHOWN_S: Final = 0.005
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What a check took.

    Attributes:
        start_s: the start of Spark, in seconds.
        check_s: the check, in seconds.
        peak_mib: the most memory that all processes had together, in MiB.
        duckdb: its search of the same files, None if it is not installed.
        rules: how long each rule takes, in seconds; nothing if that was not asked for.
        wrong: plants that were not found, and findings that were not planted.
    """

    start_s: float
    check_s: float
    peak_mib: float
    duckdb: Searched | None
    wrong: list[str] = field(default_factory=list)
    rules: dict[str, float] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Make and check the runs, and print a table; return 1 if not exactly what was planted was found."""
    parser = Parser(prog="python -m benchmarks.checkers", description="Measure how long Spark checks large runs.")
    add = parser.add_argument
    count = whole_number(3_000, RECORDS_MAX)
    add("--records", type=count, nargs="+", metavar="N", help="replica records of a run (default: seven runs)")
    add("--partitions", type=whole_number(1, 1_000), nargs="+", default=[1], metavar="N")
    batch = whole_number(1, 10_000)
    add("--batch", type=batch, nargs="+", default=[3], metavar="N", help="records of a batch")
    add("--unanswered", type=float, default=0.01, metavar="SHARE", help="of produces (default: 0.01)")
    add("--hot", action="store_true", help="the first partition has four fifths of the records")
    add("--everywhere", action="store_true", help="one divergence in each 4,096 offsets, and nothing else")
    add("--rules", action="store_true", help="print how long each rule takes with what is selected for it")
    add(
        "--folder", type=Path, metavar="FOLDER", help="where to make the runs, one after another (default: TMPDIR)"
    )
    return end("benchmarks.checkers", lambda: _measure(parser.parse_args(arguments)))


def _jobs(chosen: argparse.Namespace) -> Sequence[Job]:
    if chosen.records is None:
        return STANDARD
    return [
        Job(
            records=records,
            partitions=partitions,
            hot=chosen.hot,
            batch=batch,
            unanswered=chosen.unanswered,
            everywhere=chosen.everywhere,
        )
        for records in chosen.records
        for partitions in chosen.partitions
        for batch in chosen.batch
    ]


def _measure(chosen: argparse.Namespace) -> int:
    if chosen.folder is not None and not chosen.folder.is_dir():
        raise UsageError(f"{chosen.folder}: no such folder; expected one with room for 40 bytes a record")
    # A file takes rows as wide as they are.
    console, mistakes = Console(width=None if sys.stdout.isatty() else 150), 0
    java = find_java()
    table = Table(
        "run", "start s", "check s", "records/s", "peak MiB", "DuckDB's folds s", "and search s", "ratio"
    )
    for job in _jobs(chosen):
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            with console.status(f"making {job}"):
                _make(job, Path(folder))
            with console.status(f"checking {job}"):
                outcome = _checked(job, Path(folder), java.home, rules=chosen.rules)
        table.add_row(*_cells(job, outcome))
        if outcome.rules:
            console.print(f"{job}: {_longest(outcome.rules)}")
        mistakes += len(outcome.wrong)
        for text in outcome.wrong:
            console.print(f"{job}: {text}", highlight=False, markup=False)
    console.print(table)
    console.print(f"load average {load_average():.1f}, {os.cpu_count()} cores")
    return 1 if mistakes else 0


def _longest(rules: Mapping[str, float]) -> str:
    slow = {name: spent for name, spent in rules.items() if spent >= _SHOWN_S}
    slow["all others"] = sum(rules.values()) - sum(slow.values())
    longest = sorted(slow.items(), key=lambda rule: -rule[1])
    return ", ".join(f"{name} {spent:.2f} s" for name, spent in longest)


def _cells(job: Job, outcome: Outcome) -> list[str]:
    duckdb = outcome.duckdb
    return [
        str(job),
        f"{outcome.start_s:.1f}",
        f"{outcome.check_s:.1f}",
        f"{job.records / outcome.check_s:,.0f}",
        f"{outcome.peak_mib:,.0f}",
        "-" if duckdb is None else f"{duckdb.fold_s:.1f}",
        "-" if duckdb is None else f"{duckdb.all_s:.1f}",
        "-" if duckdb is None else f"{outcome.check_s / duckdb.all_s:.1f}",
    ]


def _make(job: Job, folder: Path) -> None:
    with _in_another_process() as pool:
        pool.submit(made, job, folder).result()


def made(job: Job, folder: Path) -> None:
    """Make the run of a job, and keep the truth beside it."""
    maker = Maker(job.shape)
    maker.make(Run(path=folder).tables)
    write_truth(folder, maker.truth)


def _checked(job: Job, folder: Path, java_home: Path, *, rules: bool) -> Outcome:
    with _in_another_process() as pool, _peak() as peak:
        found, start_s, check_s = pool.submit(_check, folder, java_home).result()
    with _in_another_process() as pool:
        duckdb = pool.submit(searched, Run(path=folder).tables).result() if find_spec("duckdb") else None
    truth = read_truth(folder)
    spent: dict[str, float] = {}
    if rules:
        with _in_another_process() as pool:
            spent = pool.submit(_rules, folder, java_home).result()
    return Outcome(
        start_s=start_s,
        check_s=check_s,
        peak_mib=peak[0],
        duckdb=duckdb,
        wrong=[*wrong(truth, found, job.batch), *(_missed(truth, duckdb) if duckdb else ())],
        rules=spent,
    )


def _missed(truth: Sequence[Planted], duckdb: Searched) -> Iterator[str]:
    """Yield what DuckDB did not find of what it looks for, so that it is known to do that work."""
    for plant in truth:
        there = {"lost": duckdb.lost, "diverged": duckdb.diverged}.get(plant.name)
        if there is not None and (plant.partition, plant.offset) not in there:
            yield f"DuckDB did not find {plant.name} of partition {plant.partition} at offset {plant.offset}"


def _check(folder: Path, java_home: Path) -> tuple[list[Anomaly], float, float]:
    began = time.monotonic()
    with spark_session(java_home) as session:
        up = time.monotonic()
        (found,) = check_runs(session, [folder], CHECKERS).values()
        return found, up - began, time.monotonic() - up


def _rules(folder: Path, java_home: Path) -> dict[str, float]:
    """Return how long each rule takes in all partitions together, with what Spark selects for it, in seconds."""
    run = Run(path=folder)
    manifest = Manifest.read(run.tables)
    spent = dict.fromkeys(CHECKERS, 0.0)
    collected: dict[Key, list[Any]] = {}
    with spark_session(java_home) as session, Tables(session, [folder]) as tables:
        parts, rows, about = selected(tables, [manifest])
        for key, table in opened(rows.collect()):
            collected.setdefault(key, []).extend(table.to_pylist())
    for part in parts:
        mine = collected[part.key]
        ops = assemble(mine, about[part.key])
        for name, checker in CHECKERS.items():
            began = time.monotonic()
            check(ops, {name: checker})
            spent[name] += time.monotonic() - began
    return spent


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
