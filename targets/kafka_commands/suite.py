"""
`fencepost test-kafka`: the scenarios that both can play, on releases of Apache Kafka and on our broker.

Prints one table scenario x release with both results, and the path of the report.
"""

from __future__ import annotations

import argparse
from functools import partial

from harness.cli.suites import scenario_files
from harness.hosts import HOSTS
from harness.registry import pick
from harness.report.conformance import render_conformance
from harness.report.console import console as make_console
from harness.scenario.file import Scenario
from harness.suite.environments import require_clients
from harness.suite.exit_codes import of_suite
from harness.suite.options import Options, configure_options
from harness.suite.runner import SuiteRunner
from harness.suite.scenario_files import read_scenario
from harness.suite.spark_worker import spark_worker
from harness.target.found import target as target_of
from targets import DEFAULT_TARGET
from targets.kafka.fetch import PlainSource, default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.releases import entries
from targets.kafka_commands.pairs import KAFKA, PATTERNS, compared, once, pairs_of, play_pairs, releases_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--release",
        action="append",
        metavar="NAME",
        help="only this release or variant, such as 3.9.1 or 2.1.1@1.1; may be repeated",
    )
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this scenario; may be repeated")
    parser.add_argument("--repository", metavar="URL", help="fetch missing jars from this Maven repository")
    configure_options(parser, HOSTS)


def run(arguments: argparse.Namespace) -> int:
    """
    Fetch missing jars, play, judge, compare; return the exit code.

    Raises:
        UsageError: an option is wrong, or jars are missing and cannot be fetched.
    """
    console, options = make_console(), Options.of(arguments)
    chosen = [
        pick("release of Apache Kafka", entries(), name) for name in dict.fromkeys(arguments.release or entries())
    ]
    targets = {name: target_of(name) for name in (KAFKA, DEFAULT_TARGET)}
    pairs = pairs_of(_scenarios(arguments), chosen, targets, options)
    require_clients(once(one.theirs for one in pairs))
    make_host = partial(pick("host", HOSTS, options.host), ports=options.ports, machines=options.machines)
    source = PlainSource(arguments.repository) if arguments.repository else default_source()
    releases = releases_of(chosen, pairs, targets[KAFKA])
    fetch(releases, cache_dir(), source, partial(console.print, highlight=False, markup=False, soft_wrap=True))
    about = (
        f"{len(once(one.theirs for one in pairs))} runs on {len(chosen)} of Apache Kafka, "
        f"{len(once(one.ours for one in pairs))} on our broker"
    )
    runner = SuiteRunner.begin("test-kafka", options, about, console)
    with spark_worker(runner.java.home) as spark:
        play_pairs(runner, make_host, targets, pairs)
        suite, report = runner.conclude(spark, f"{KAFKA}, {DEFAULT_TARGET}")
    render_conformance(suite, compared(pairs, suite.results), console)
    runner.say(f"report: {report or 'none'}")
    return of_suite(suite.results, runner.problems)


def _scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    """Return the scenarios that the options name, else all that both can play."""
    files = scenario_files(("*",))
    return [
        read_scenario(pick("scenario", files, name))
        for name in dict.fromkeys(arguments.scenario or scenario_files(PATTERNS))
    ]
