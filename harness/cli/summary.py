"""
`fencepost summary RESULTS…`: what many stored runs showed, as a data set, as tables, and as one page with plots.

Spark reads the histories and counts; nothing is judged again. What cannot be read is counted with its reason.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd
from rich.console import Console

from checkers.measures.folders import Folders, find_folders
from checkers.measures.schema import FOLDER, SCHEMA_FILE, VERSION
from checkers.measures.stored import untabled_rows
from checkers.spark.options import SparkOptions
from harness.model import EXIT_CODES, UsageError
from harness.report.console import console as make_console
from harness.report.summary_page import build_summary, headline
from harness.report.summary_table import TITLES, records_of, render_summary
from harness.suite.described import describe
from harness.suite.interrupts import INTERRUPTS
from harness.suite.options import configure_spark, spark_options

PAGE: Final = "summary.html"
_NAME: Final = "summary"
# How often a folder is put in the place of another that is filled again and again.
REPLACES_MAX: Final = 20
# What a script can have: all tables of the terminal, and those that only the page draws.
TABLES: Final = (*TITLES, "latencies", "availability", "suites")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "results",
        metavar="RESULTS",
        nargs="+",
        type=Path,
        help="the folder of a suite or a run, or one with suites in it, as results",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where data set and page go (default: `summary` below RESULTS)"
    )
    configure_spark(parser)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--json", action="store_true", help="print all tables as one JSON object")
    one.add_argument(
        "--csv", choices=TABLES, metavar="TABLE", help=f"print this table as CSV: {', '.join(TABLES)}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the data set and the page, and print the tables; return 3 if something could not be read, else 0."""
    console = make_console(stderr=bool(arguments.json or arguments.csv))
    spark = spark_options(arguments)
    found = find_folders(arguments.results)
    out = arguments.out or _default(arguments.results)
    suites = len(found.suites) + len(found.untabled)
    console.print(f"{found.runs:,} runs in {suites:,} suites", highlight=False)
    with _fresh(out) as partial:
        frames = _summarize(found, partial, console, spark)
        build_summary(frames, partial / PAGE)
    _print(frames, out, arguments, console)
    return EXIT_CODES["unknown" if len(frames["unreadable"]) else "valid"]


def _summarize(found: Folders, out: Path, console: Console, spark: SparkOptions) -> Mapping[str, pd.DataFrame]:
    # Imported here: a wrong use need not wait for Spark.
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from checkers.spark.aggregates import aggregates
    from checkers.spark.data_set import read_data_set, write_data_set
    from checkers.spark.errors import said
    from harness.suite.spark_here import with_spark

    with console.status("starting Spark") as status:

        def step(text: str) -> None:
            if console.is_terminal:
                status.update(text)
            else:
                console.print(text, highlight=False)

        def ask(session: Any) -> Mapping[str, pd.DataFrame]:
            if found.untabled:
                step(f"reading what the runs of {len(found.untabled):,} folders without a table say")
            data = write_data_set(session, found, out, step, [*_untabled(found)])
            step("adding up")
            return aggregates(read_data_set(session, data))

        try:
            return with_spark(ask, spark, large=bool(found.large))
        except (PySparkException, Py4JError) as error:
            places = ", ".join(sorted(map(str, {*found.suites, *found.untabled, *found.chosen}))[:3])
            raise UsageError(
                f"Spark, in {places}: {said(error)}; expected stored runs that it can read; nothing was written"
            ) from error


def _untabled(found: Folders) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of what searches, nights and killed commands left without a table."""
    for folder, runs in found.untabled.items():
        described = describe(folder, runs)
        yield from untabled_rows(str(folder), described.suite, described.unread)


def _print(frames: Mapping[str, pd.DataFrame], out: Path, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.csv:
        print(frames[arguments.csv].to_csv(index=False), end="")
    elif arguments.json:
        tables = {name: records_of(frames[name]) for name in (*TABLES, "totals")}
        raw = {"version": VERSION, "data": str(out / FOLDER), "page": str(out / PAGE), "tables": tables}
        print(json.dumps(raw, indent=1, default=str))
    else:
        render_summary(frames, console)
    console.print(headline(records_of(frames["totals"])[0]), highlight=False)
    for what, path in (("data set", out / FOLDER), ("page", out / PAGE)):
        console.print(f"{what}: {path}", highlight=False, markup=False, soft_wrap=True)


# --- where it goes -----------------------------------------------------------------------------------------------
def _default(results: Sequence[Path]) -> Path:
    """Return the folder for the summary of these folders: below the one that all of them are in."""
    if len(results) == 1:
        return results[0] / _NAME
    return Path(os.path.commonpath([path.resolve() for path in results])) / _NAME


@contextmanager
def _fresh(out: Path) -> Iterator[Path]:
    """
    Yield a new folder, which takes the place of `out` at the end of the block; an error in the block deletes it.

    Raises:
        UsageError: there is something at `out` that is no summary, or it cannot be written.
    """
    if os.path.lexists(out) and not os.path.isfile(out / FOLDER / SCHEMA_FILE):
        raise UsageError(f"{out}: already there, and no summary; expected a new name (--out), or move it away")
    partial = out.with_name(f".{out.name}-{os.getpid()}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        with INTERRUPTS.shielded():
            _replace(out, partial)
    except OSError as error:
        raise UsageError(
            f"{out}: {error.strerror or error}; expected a folder that can be written; name another (--out)"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _replace(out: Path, partial: Path) -> None:
    """Put a folder in the place of another, which a command beside this one may fill at the same time."""
    for left in reversed(range(REPLACES_MAX)):
        shutil.rmtree(out, ignore_errors=True)
        try:
            partial.rename(out)
        except OSError as error:
            if not left or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
