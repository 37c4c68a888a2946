"""
`fencepost shrink`: reduce a schedule that shows a violation to a minimal one that shows the same kind.

The schedule is played in the simulator, hundreds of times, each time with fewer or simpler steps. What is left is
printed and written as a scenario, with what is expected of it under each protocol.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from rich.console import Console

from harness import limits
from harness.ending import seconds, whole_number
from harness.model import EXIT_CODES, UsageError
from harness.report.console import console as make_console
from harness.run.store import Run
from harness.scenario.variant import check_distinct, present_name
from harness.search.cores import cores
from harness.search.shrink.minimal import Ended
from harness.search.shrink.output import ShrinkProgress, summary_of, write_shrunk
from harness.search.shrink.shrink import Bounds, NotShownError, Shrunk, shrink
from harness.search.shrink.source import PROTOCOL, Source, read_source
from harness.search.shrink.subject import Subject
from harness.search.tally_tables import say
from harness.suite.options import configure_targets

TRIES: Final = 3_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a run's folder, its history.jsonl, or a schedule")
    add("--protocol", help=f"a protocol, or a mutant of one (default: the run's, or {PROTOCOL})")
    add("--rule", action="append", metavar="RULE=VALUE", help="change a rule of the protocol; may be repeated")
    add("--seed", type=whole_number(0, limits.OPTION_SEED_MAX), help="seed of the world (default: the run's)")
    jobs = whole_number(1, limits.OPTION_JOBS_MAX)
    add("--jobs", type=jobs, help="processes; the result does not depend on it (default: one for each core)")
    tries = whole_number(1, limits.OPTION_SEEDS_MAX)
    add(
        "--tries", type=tries, default=TRIES, metavar="COUNT", help=f"most runs that are played (default: {TRIES})"
    )
    add("--seconds", type=seconds, metavar="S", help="take so many seconds at most (default: no limit)")
    add(
        "--steady",
        action="store_true",
        help="add steps, so that it ends the same on slower machines; takes longer",
    )
    configure_targets(parser)
    add("--output", type=_file, metavar="FILE", help="write it there (default: shrunk.txt beside the schedule)")


def _file(text: str) -> Path:
    """Parse a file's name; refuse the empty one of an unset variable."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a file, such as shrunk.txt")
    return Path(text)


def run(arguments: argparse.Namespace) -> int:
    """Shrink, print and write; return the exit code."""
    console = make_console()
    source, output = _read(arguments)
    subject = Subject.of(source.protocol, source.rules, seed=source.seed, name=output.stem, alike=source.alike)
    bounds = Bounds(
        jobs=arguments.jobs or cores(),
        tries=arguments.tries,
        seconds=arguments.seconds,
        steady=arguments.steady,
    )
    say(console, f"{len(source.scenario.steps)} steps, seed {source.seed}, {subject.variant}")
    try:
        with ShrinkProgress(console, len(source.scenario.steps)) as progress:
            shrunk = shrink(source.scenario, subject, bounds, output, progress.step)
    except NotShownError as error:
        say(console, f"{arguments.file}: {error}")
        return EXIT_CODES["unknown"]
    _print(shrunk, output, console)
    write_shrunk(shrunk, output)
    if shrunk.ended is Ended.INTERRUPTED:
        raise KeyboardInterrupt
    return EXIT_CODES["valid"]


def _read(arguments: argparse.Namespace) -> tuple[Source, Path]:
    """Return what is to be shrunk, and where it will be written; raise UsageError for what cannot be."""
    rules = tuple(map(present_name, arguments.rule or ()))
    check_distinct(rules, "option --rule")
    source = read_source(arguments.file, protocol=arguments.protocol, rules=rules, seed=arguments.seed)
    output = arguments.output or Run(path=source.folder).shrunk
    if os.path.lexists(output):
        raise UsageError(f"{output}: already there; expected a new name (--output)")
    if not os.path.isdir(output.parent):
        raise UsageError(f"{output}: no such folder; expected a file in one that exists (--output)")
    return source, output


def _print(shrunk: Shrunk, output: Path, console: Console) -> None:
    for line in (
        summary_of(shrunk),
        "",
        *shrunk.text.splitlines(),
        "",
        *shrunk.result.sentences,
        f"schedule: {output}",
        f"again: {shrunk.again}",
    ):
        say(console, line)
