"""`fencepost scenarios`: every scenario with its title, its sources, and its expectations by protocol."""

from __future__ import annotations

import argparse

from rich.text import Text

from harness.model import EXIT_CODES
from harness.registry import pick
from harness.report.console import console as make_console
from harness.scenario.file import Scenario
from harness.suite.options import configure_targets
from harness.suite.scenario_files import files_for, own_files, read_for
from harness.target.found import found
from targets import DEFAULT_TARGET


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    configure_targets(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the scenarios."""
    console = make_console()
    shared = files_for(DEFAULT_TARGET, ("*",))
    # A scenario of a target's own is read with its versions.
    places = {path.stem: (name, path) for name in found() for path in own_files(name)}
    places |= {name: (DEFAULT_TARGET, path) for name, path in shared.items()}
    read = [read_for(*pick("scenario", places, name)) for name in arguments.names or places]
    for scenario in read:
        for line in describe(scenario):
            console.print(line, soft_wrap=True)
    return EXIT_CODES["valid"]


def describe(scenario: Scenario) -> list[Text]:
    """Return a scenario as lines: its name and title, its sources, and one line for each outcome."""
    lines = [Text(scenario.name, "bold").append(f"  {scenario.title}", "not bold")]
    lines += [Text(f"  source  {source}", "dim") for source in scenario.sources]
    by_outcome: dict[str, list[str]] = {}
    for variant, outcome in scenario.expectations.items():
        by_outcome.setdefault(outcome, []).append(variant)
    return lines + [
        Text(f"  {outcome}  ", "default").append(", ".join(variants), "cyan")
        for outcome, variants in by_outcome.items()
    ]
