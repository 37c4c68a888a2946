"""
`fencepost nightly`: play a plan for some hours, on all its hosts, and end with one page.

A night that was killed goes on where it was when the command is given again; a second one on the same results is
refused. docs/nights.md has the plan's keys, a cron line, a systemd timer and a CI job.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from harness import limits
from harness.ending import seconds, whole_number
from harness.night.night import play_night
from harness.night.opening import SEED_MAX, Options
from harness.night.output import HTML
from harness.night.plan import read_plan
from harness.night.view import headline
from harness.report.console import console as make_console
from harness.search.tally_tables import say
from harness.suite.options import configure_targets, folder, ports

HOURS: Final = 8.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--hours", type=seconds, metavar="H", help=f"how long the night lasts (default: {HOURS:g})"
    )
    length.add_argument("--minutes", type=seconds, metavar="M", help="the same in minutes")
    add(
        "--plan",
        type=Path,
        metavar="FILE",
        help="what is played (default: the one of --print-plan)",
    )
    add("--print-plan", action="store_true", help="print the plan and play nothing")
    add(
        "--host",
        action="append",
        metavar="HOST[,HOST]",
        help="only these hosts of the plan; may be repeated (default: all of them)",
    )
    add(
        "--target",
        action="append",
        metavar="TARGET:PROTOCOL",
        help="these targets in place of the plan's, such as broker:kip279 or kafka:3.9.1; may be repeated",
    )
    text = "the night's first seed (default: random, or that of the night that goes on)"
    add("--seed", type=whole_number(0, SEED_MAX), help=text)
    add("--fresh", action="store_true", help="begin a new night, and close one that was not ended")
    text = "a night is unknown if a line is left out because this machine lacks what it needs"
    add("--strict", action="store_true", help=text)
    text = "parallel runs (default: one for each core in the simulator, and what the plan says on other hosts)"
    add("--jobs", type=whole_number(1, limits.OPTION_JOBS_MAX), help=text)
    add("--power-tier", choices=("loop", "watermark"), help="require this way to lose power")
    text = f"ports that local nodes may use (default: {limits.PORT_FIRST}-{limits.PORT_LAST})"
    add("--ports", type=ports, metavar="FIRST-LAST", help=text)
    text = "folder of the results; nights are in its folder `nights` (default: results)"
    add("--results", type=folder, default=Path("results"), help=text)
    configure_targets(parser)


def run(arguments: argparse.Namespace) -> int:
    """Play a night, or what is left of it; return 0 if all is as expected, 4 for a finding, else 3."""
    plan = read_plan(arguments.plan)
    if arguments.print_plan:
        print(plan.text, end="")
        return 0
    targets = tuple(arguments.target or ())
    hosts = tuple(dict.fromkeys(host for text in arguments.host or () for host in text.split(",")))
    plan = plan.of(targets) if targets else plan
    plan = plan.on(hosts) if hosts else plan
    console = make_console()
    asked_s = arguments.minutes * 60 if arguments.minutes else (arguments.hours or HOURS) * 3600
    options = Options(
        plan=plan,
        results=arguments.results,
        seconds=asked_s,
        hosts=hosts,
        targets=targets,
        seed=arguments.seed,
        jobs=arguments.jobs,
        ports=arguments.ports,
        power_tier=arguments.power_tier,
        fresh=arguments.fresh,
        strict=arguments.strict,
    )
    outcome = play_night(options, console)
    say(console, headline(outcome))
    say(console, f"page: {options.nights / outcome.name / HTML}")
    return outcome.code
