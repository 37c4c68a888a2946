"""`fencepost scenarios`: every scenario with its title, its sources, and its expectations by protocol."""

from __future__ import annotations

import argparse

from rich.text import Text

from harness.cli.suites import scenario_files
from harness.model import EXIT_CODES
from harness.registry import pick
from harness.report.console import console as make_console
from harness.scenario.file import Scenario
from harness.suite.options import configure_targets
from harness.suite.scenario_files import read_scenario


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    configure_targets(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the scenarios."""
    console = make_console()
    files = scenario_files(("*",))
    read = [read_scenario(pick("scenario", files, name)) for name in arguments.names or files]
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
