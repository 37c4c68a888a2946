"""
`fencepost check RESULTS…`: judge stored runs again, on Spark, and compare each verdict with the stored one.

With `--jepsen FILE…`, histories of Jepsen's are judged instead: harness/cli/check_jepsen.py.

Exit codes: 0 every verdict is as stored; 2 a folder has no run; 3 a run is unknown and was not stored as that, or
something cannot be read; 4 a verdict is not as stored. A run without a stored verdict is held to its expectation.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from checkers.spark.options import Folder, folder_of
from harness.cli import check_jepsen
from harness.cli.check_output import json_text, print_text
from harness.java import find_java
from harness.model import EXIT_CODES, UsageError
from harness.report.console import console as make_console
from harness.report.text import plural
from harness.suite.again import Change
from harness.suite.options import configure_spark, folder, spark_options
from harness.suite.recheck import CheckedSuite, recheck
from harness.suite.restore import restore
from harness.suite.spark_worker import SparkWorker, spark_worker
from harness.suite.stored import Stored, find_stored, stored_elsewhere


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "results",
        metavar="RESULTS",
        nargs="*",
        type=results,
        help="a run's folder, a suite's, or one with suites, such as results; or its URI, such as hdfs://HOST/PATH",
    )
    configure_spark(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object, with --jepsen one a file, for scripts: its keys are in docs/check.md",
    )
    parser.add_argument(
        "--store",
        action="store_true",
        help="write what was found now to anomalies.json and suite.json; without it, they stay as they are",
    )
    check_jepsen.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the runs again, print the differences, return the exit code."""
    if arguments.jepsen:
        return check_jepsen.run(arguments)
    if not arguments.results:
        raise UsageError(
            "the following arguments are required: RESULTS, or --jepsen FILE. See `fencepost check --help`"
        )
    if arguments.sub_via is not None or arguments.ww_deps is not None:
        option = "--sub-via" if arguments.sub_via is not None else "--ww-deps"
        raise UsageError(f"{option} without --jepsen; expected it only with histories of Jepsen's")
    options = spark_options(arguments)
    elsewhere = [each for each in arguments.results if isinstance(each, str)]
    if elsewhere and arguments.store:
        raise UsageError(f"--store {elsewhere[0]}: expected local folders, which alone can be written")
    stored = find_stored([each for each in arguments.results if isinstance(each, Path)])
    with spark_worker(find_java().home, options) as spark:
        if elsewhere:
            stored = _with_those_elsewhere(spark, stored, elsewhere)
        checked = _checked(spark, stored)
    problems = [*stored.unlisted, *(suite.problem for suite in stored.suites if suite.problem)]
    if arguments.store:
        problems += [problem for suite in checked for problem in restore(suite)]
    code = _code(checked, problems)
    if arguments.json:
        verdict = next(word for word, number in EXIT_CODES.items() if number == code)
        print(json_text(checked, problems, verdict))
    else:
        print_text(make_console(), checked, problems)
    return code


def results(text: str) -> Folder:
    """Parse the name of a folder, or its URI."""
    folder(text)  # refuses an empty one
    return folder_of(text)


def _with_those_elsewhere(spark: SparkWorker, stored: Stored, uris: Sequence[str]) -> Stored:
    with make_console(stderr=True).status("Spark looks for runs"):
        found = spark.find(uris)
    if not found:
        raise UsageError(
            f"{', '.join(uris)}: no run there; expected a folder with runs that have a history or tables"
        )
    elsewhere = stored_elsewhere(found)
    return replace(stored, suites=stored.suites + elsewhere.suites)


def _checked(spark: SparkWorker, stored: Stored) -> list[CheckedSuite]:
    """Judge the runs on Spark; progress is on stderr, so that stdout has only what was found."""
    total = sum(not each.problem for suite in stored.suites for each in suite.runs)
    console = make_console(stderr=True)
    checked = 0

    def say(text: str) -> None:
        if not console.is_terminal:
            console.print(text, highlight=False, markup=False)

    def done(runs: int) -> None:
        nonlocal checked
        checked += runs
        progress.advance(task, runs)
        say(f"checked {checked:,} of {plural(total, 'run')}")

    suites = plural(len(stored.suites), "suite")
    say(f"checking {plural(total, 'run')} of {suites}; Spark starts first, which takes some seconds")
    bar = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*bar, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("checking on Spark", total=total)
        return recheck(spark, stored, done)


def _code(checked: Sequence[CheckedSuite], problems: Sequence[str]) -> int:
    changes = {each.change for suite in checked for each in suite.runs}
    if Change.DIFFERENT in changes:
        return EXIT_CODES["invalid"]
    return EXIT_CODES["unknown" if Change.UNKNOWN in changes or problems else "valid"]
