"""
`fencepost check RESULTS…`: judge stored runs again, on Spark, and compare each verdict with the stored one.

Exit codes: 0 every verdict is as stored; 2 a folder has no run; 3 a run is unknown and was not stored as that, or
something cannot be read; 4 a verdict is not as stored. A run without a stored verdict is held to its expectation.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.cli.check_output import json_text, print_text
from harness.java import find_java
from harness.model import EXIT_CODES
from harness.suite.again import Change
from harness.suite.options import folder
from harness.suite.recheck import CheckedSuite, recheck
from harness.suite.spark_worker import spark_worker
from harness.suite.stored import Stored, find_stored


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "results",
        metavar="RESULTS",
        nargs="+",
        type=folder,
        help="a run's folder, a suite's, or one with suites in it, such as results",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object, for scripts: its keys are in docs/check.md"
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the runs again, print the differences, return the exit code."""
    stored = find_stored(arguments.results)
    checked = _checked(stored)
    problems = [*stored.unlisted, *(suite.problem for suite in stored.suites if suite.problem)]
    code = _code(checked, problems)
    if arguments.json:
        verdict = next(word for word, number in EXIT_CODES.items() if number == code)
        print(json_text(checked, problems, verdict))
    else:
        print_text(Console(), checked, problems)
    return code


def _checked(stored: Stored) -> list[CheckedSuite]:
    """Judge the runs on Spark; progress is on stderr, so that stdout has only what was found."""
    total = sum(not each.problem for suite in stored.suites for each in suite.runs)
    console = Console(stderr=True)
    bar = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*bar, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("checking on Spark", total=total)
        with spark_worker(find_java().home) as spark:
            return recheck(spark, stored, lambda runs: progress.advance(task, runs))


def _code(checked: Sequence[CheckedSuite], problems: Sequence[str]) -> int:
    changes = {each.change for suite in checked for each in suite.runs}
    if Change.DIFFERENT in changes:
        return EXIT_CODES["invalid"]
    return EXIT_CODES["unknown" if Change.UNKNOWN in changes or problems else "valid"]
