"""
`fencepost test TARGET[:VERSION]…`: play the suite that a target's folder names, and print scenario by version.

That are the scenarios of its own (`scenarios/*.txt`), and the shared ones of which something is expected of it.
The exit code is the most severe of all targets: 0 as expected, 3 something is unknown, 4 something differs.
"""

from __future__ import annotations

import argparse
from typing import Final

from harness.cli import suites
from harness.cli.asked import asked, run_own
from harness.environment import ENVIRONMENTS
from harness.suite.options import configure_options, configure_targets
from harness.target.commands import spelled, usual, usual_versions
from harness.target.found import entry

# In place of a scenario's name.
ALL: Final = "all"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    text = (
        "a target, or one version of it, such as kafka:1.1.1; without versions those that it usually plays, or all"
    )
    parser.add_argument("targets_asked", metavar="TARGET[:VERSION]", nargs="+", help=text)
    text = f"only this scenario, may be repeated; {ALL}: also those that the target leaves out of its usual suite"
    parser.add_argument("--scenario", action="append", metavar="NAME", help=text)
    configure_options(parser, ENVIRONMENTS)
    configure_targets(parser)


def run(arguments: argparse.Namespace) -> int:
    """
    Play, judge, report, target by target; return the exit code.

    Raises:
        UsageError: a name or an option is wrong, or nothing is expected of a target.
    """
    codes = []
    for name, versions in asked(arguments.targets_asked).items():
        own = spelled(entry(name), "TEST")
        if own is not None:
            codes.append(run_own(own.of(versions), arguments))
            continue
        # Whoever names scenarios may name any of them.
        patterns = ("*",) if arguments.scenario else usual(entry(name))
        selection = suites.Selection(name=f"test-{name}", make="scenarios", patterns=patterns)
        played = versions or (() if arguments.scenario == [ALL] else usual_versions(entry(name)))
        given = {**vars(arguments), "target": name, "protocol": list(played), "rule": None}
        if arguments.scenario == [ALL]:
            given["scenario"] = None
        options = argparse.Namespace(**given)
        codes.append(suites.run(selection, options))
    return max(codes)
