"""
The common part of the commands that play written scenarios: options, specs, playing, judging, table, exit code.

A command selects the scenarios and protocols (`Selection`); the rest is the same for all.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.environment import ENVIRONMENTS
from harness.model import UsageError
from harness.registry import pick
from harness.report.console import console as make_console
from harness.report.table import render_table
from harness.run.spec import RunSpec
from harness.scenario.file import Scenario, draw
from harness.scenario.variant import Variant, expectation_of, is_mutant
from harness.suite.exit_codes import of_suite
from harness.suite.options import Options, configure_options, configure_stop, configure_targets
from harness.suite.runner import SuiteRunner
from harness.suite.scenario_files import files_for, read_for
from harness.suite.spark_worker import spark_worker
from harness.target import found
from harness.target.target import Target, traits_under
from targets import DEFAULT_TARGET


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """
    The scenarios and protocols that a command plays by default.

    Attributes:
        name: the name of the suite.
        make: the Makefile target that plays it.
        patterns: patterns of scenario files.
        protocols: the columns; () for every protocol and mutant that a scenario has an expectation for.
    """

    name: str
    make: str
    patterns: tuple[str, ...]
    protocols: tuple[str, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""

    def several(option: str, metavar: str, text: str) -> None:
        parser.add_argument(option, action="append", metavar=metavar, help=f"{text}; may be repeated")

    configure_options(parser, ENVIRONMENTS)
    configure_stop(parser)
    configure_targets(parser)
    parser.add_argument(
        "--target",
        default=DEFAULT_TARGET,
        metavar="TARGET[:PROTOCOL]",
        help=f"the target: {', '.join(found.found())}; TARGET:VERSION is the target with this version alone",
    )
    several("--scenario", "NAME", "only this scenario")
    several("--protocol", "NAME", "only this protocol, or mutant of one (PROTOCOL+RULE=VALUE)")
    several("--rule", "RULE=VALUE", "change a rule of every protocol")
    parser.add_argument(
        "--set",
        action="append",
        dest="rule",
        metavar="PROPERTY=VALUE",
        help="the same, for a target whose rules are properties",
    )


def run(selection: Selection, arguments: argparse.Namespace) -> int:
    """Play, judge, report; return the exit code."""
    console, options = make_console(), Options.of(arguments)
    target, protocols = asked_target(arguments)
    specs = specs_of(selection, target, options, tuple(dict.fromkeys(arguments.scenario or ())), protocols)
    environment = options.make_environment(target)
    about = (
        f"target {target.name}, {len(specs)} runs, {options.jobs or environment.jobs} at a time, "
        f"rules changed: {' '.join(options.rules) or 'none'}"
    )
    runner = SuiteRunner.begin(selection.name, options, about, console)
    with spark_worker(runner.java.home) as spark:
        if runner.leaves_a_core(environment):
            spark.start()
        runner.play(environment, specs)
        suite, report = runner.conclude(spark, target.name)
    render_table(suite, console)
    runner.say(f"report: {report or 'none'}")
    return of_suite(suite.results, runner.problems)


def asked_target(arguments: argparse.Namespace) -> tuple[Target, tuple[str, ...]]:
    """Split TARGET[:PROTOCOL]; return the target, and the protocols named there and by --protocol."""
    name, _, protocol = arguments.target.partition(":")
    return found.target(name), tuple(dict.fromkeys((*filter(None, [protocol]), *(arguments.protocol or ()))))


def scenario_files(patterns: Sequence[str]) -> Mapping[str, Path]:
    """Return name -> file of the shared scenarios that match, pattern by pattern, each sorted by name."""
    return files_for(DEFAULT_TARGET, patterns)


def specs_of(
    selection: Selection, target: Target, options: Options, names: Sequence[str], protocols: Sequence[str]
) -> list[RunSpec]:
    """
    Return the specs of all runs, scenario by scenario: protocols in the order of the target's table, then mutants.

    Args:
        selection: the default scenarios and protocols.
        target: the target.
        options: how the runs are played.
        names: names of scenarios, () for all of the selection.
        protocols: names of protocols and mutants, () for all of the selection.
    """
    files = files_for(target.name, selection.patterns)
    scenarios = [read_for(target.name, pick("scenario", files, name)) for name in names or files]
    asked = [Variant.parse(text, "option --protocol") for text in protocols]
    for variant in asked:
        pick("protocol", target.protocols(), variant.protocol)
    made: list[RunSpec] = []
    for scenario in scenarios:
        drawn = draw(scenario, options.seed)
        for variant in asked or variants_of(scenario, target, selection.protocols):
            spec = RunSpec(
                target=target.name,
                host=options.host,
                variant=variant,
                changes=options.rules,
                rules=target.rules(variant.protocol, (*variant.changes, *options.rules)),
                traits=traits_under(target, variant.protocol, (*variant.changes, *options.rules)),
                scenario=scenario,
                draw=drawn,
                make=selection.make,
                power_tier=options.power_tier,
                machines=str(options.machines or ""),
                stop_at_violation=options.stop_at_violation,
            )
            if spec.expectation is not None:
                made.append(spec)
            elif names:
                raise UsageError(
                    f"scenario {scenario.name}: no expectation for protocol {variant}; expected a line "
                    "'expect PROTOCOL: OUTCOME', or one of " + ", ".join(scenario.expectations)
                )
    if not made:
        raise UsageError(
            f"no scenario of {', '.join(selection.patterns)} has an expectation for "
            f"{', '.join(map(str, asked)) or target.name}; expected one that does"
        )
    return made


def variants_of(scenario: Scenario, target: Target, columns: Sequence[str]) -> list[Variant]:
    """
    Return the scenario's variants: the target's protocols with an expectation, then the scenario's mutants.

    Args:
        scenario: the scenario.
        target: the target.
        columns: if not empty, only these protocols, and releases that correspond to one of them; no mutants.
    """
    ladder = [(Variant(protocol=name), traits_under(target, name, ())) for name in target.protocols()]
    known = [one for one in ladder if expectation_of(*one, scenario.expectations) is not None]
    if columns:
        return [variant for variant, traits in known if set(variant.names(traits)) & set(columns)]
    mutants = [
        Variant.parse(text, f"scenario {scenario.name}") for text in scenario.expectations if is_mutant(text)
    ]
    return [*(variant for variant, _ in known), *(one for one in mutants if one.protocol in target.protocols())]
