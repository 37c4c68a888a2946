"""
`fencepost fetch TARGET[:VERSION]…`: bring what targets need that Fencepost does not have.

Exit codes: 0 all of it is there; 2 a target or version is unknown, something cannot be reached, or differs from
its pinned checksum.
"""

from __future__ import annotations

import argparse
from functools import partial

from harness.cli.asked import asked, run_own
from harness.downloads import bring, cache_of
from harness.model import EXIT_CODES
from harness.report.console import console as make_console
from harness.suite.options import configure_targets
from harness.target.commands import bringing, spelled
from harness.target.found import entry


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    text = "a target, or one version of it, such as kafka:1.1.1; without versions all of them"
    parser.add_argument("targets_asked", metavar="TARGET[:VERSION]", nargs="+", help=text)
    configure_targets(parser)


def run(arguments: argparse.Namespace) -> int:
    """
    Bring it, target by target; return the exit code.

    Raises:
        UsageError: a name is wrong, or something cannot be brought.
    """
    console = make_console(highlight=False, soft_wrap=True, markup=False)
    for name, versions in asked(arguments.targets_asked).items():
        target, own = entry(name).load(), spelled(entry(name), "FETCH")
        if own is not None:
            run_own(own.of(versions or tuple(target.protocols())), arguments)
            continue
        if (brings := bringing(entry(name))) is not None:
            brings(versions, partial(console.print, f"{name}:"))
            continue
        if target.downloads is None:
            console.print(f"{name}: needs nothing")
            continue
        needed = {one.path: one for each in versions or target.protocols() for one in target.downloads(each)}
        bring(tuple(needed.values()), cache_of(name), partial(console.print, f"{name}:"))
    return EXIT_CODES["valid"]
