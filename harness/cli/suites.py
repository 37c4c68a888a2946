"""
What the commands that play scenarios have in common: options, cells, ground, checking, table, report, exit code.

A command chooses which scenarios it plays under which protocols (`Selection`); all else is the same for each.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from harness.cell import CellSpec, Played
from harness.cli.beside import spark_beside
from harness.cli.course import SEED_MAX, Course, commit, configure_course, ports, seed_of
from harness.cli.grounds import GROUNDS
from harness.cli.judging import exit_code
from harness.ground import MakeGround
from harness.model import EXIT_CODES, UsageError
from harness.registry import load, pick
from harness.report.table import render_table
from harness.schedule import Scenario, draw, read_scenario
from harness.target import Target
from harness.variant import Variant, expectation_of, is_mutant
from targets import TARGETS
from workloads import SCENARIOS

__all__ = [
    "SEED_MAX",
    "Selection",
    "commit",
    "configure",
    "ports",
    "run",
    "scenario_files",
    "target_of",
    "variants_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """
    What a command plays when nobody says more.

    Shapes:  name is the suite's, make the target of the Makefile that plays it. patterns are of scenario files.
             protocols are the columns; () for every protocol and mutant that a scenario names.
    """

    name: str
    make: str
    patterns: tuple[str, ...]
    protocols: tuple[str, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""

    def several(option: str, metavar: str, text: str) -> None:
        parser.add_argument(option, action="append", metavar=metavar, help=f"{text}; may be repeated")

    configure_course(parser, GROUNDS)
    parser.add_argument(
        "--target",
        default="broker",
        metavar="TARGET[:PROTOCOL]",
        help=f"what is tested: {', '.join(TARGETS)}; kafka:3.9.1 is the target kafka, and only its protocol 3.9.1",
    )
    several("--scenario", "NAME", "only this scenario")
    several("--protocol", "NAME", "only this protocol, or mutant of one (PROTOCOL+RULE=VALUE)")
    several("--rule", "RULE=VALUE", "change a rule of every protocol played")
    parser.add_argument(
        "--set",
        action="append",
        dest="rule",
        metavar="PROPERTY=VALUE",
        help="the same, where rules are properties",
    )


def run(selection: Selection, arguments: argparse.Namespace) -> int:
    """Play, judge, report; see EXIT_CODES."""
    console = Console()
    seed = seed_of(arguments)
    target = target_of(arguments)
    specs = _specs(selection, arguments, target, seed)
    make_ground: MakeGround = load("host", GROUNDS, arguments.host, "make_ground")
    ground = make_ground(arguments.host, target=target, power_tier=arguments.power_tier, ports=arguments.ports)
    about = (
        f"target {target.name}, {len(specs)} cells, {arguments.jobs or ground.jobs} at a time, "
        f"rules changed: {' '.join(arguments.rule or ()) or 'none'}"
    )
    course = Course.begin(selection.name, arguments, seed, about, console)
    with spark_beside(course.java.home) as spark:
        if course.leaves_a_core(ground):
            spark.start()
        played = course.play(ground, target, specs)
        rerun = partial(_rerun, selection, arguments)
        suite, report = course.conclude(spark, played, rerun, target.name)
    render_table(suite, console)
    console.print(f"report: {report}", highlight=False, markup=False, soft_wrap=True)
    return exit_code(suite.cells, EXIT_CODES)


def target_of(arguments: argparse.Namespace) -> Target:
    """Take TARGET[:PROTOCOL] apart: the protocol joins those asked for, and the target is left."""
    name, _, protocol = arguments.target.partition(":")
    found: Target = load("target", TARGETS, name, "TARGET")
    if protocol:
        arguments.protocol = [protocol, *(arguments.protocol or ())]
    arguments.target = name
    return found


def scenario_files(patterns: Sequence[str]) -> Mapping[str, Path]:
    """Find the scenarios whose files match, by name; pattern by pattern, each in the order of names."""
    found = (path for pattern in patterns for path in sorted(SCENARIOS.glob(f"{pattern}.txt")))
    return {path.stem: path for path in found}


def _specs(selection: Selection, arguments: argparse.Namespace, target: Target, seed: int) -> list[CellSpec]:
    """Every cell asked for, scenario by scenario: protocols in the order of the ladder, then mutants."""
    files = scenario_files(selection.patterns)
    scenarios = [read_scenario(pick("scenario", files, name)) for name in arguments.scenario or files]
    asked = [Variant.parse(text, "option --protocol") for text in arguments.protocol or ()]
    for variant in asked:
        pick("protocol", target.protocols(), variant.protocol)
    made: list[CellSpec] = []
    for scenario in scenarios:
        drawn = draw(scenario, seed)
        for variant in asked or variants_of(scenario, target, selection.protocols):
            rules = target.rules(variant.protocol, (*variant.changes, *(arguments.rule or ())))
            spec = CellSpec(scenario=scenario, draw=drawn, variant=variant, rules=rules)
            if spec.expectation is not None:
                made.append(spec)
            elif arguments.scenario:
                raise UsageError(
                    f"scenario {scenario.name}: says nothing of protocol {variant}; expected a line "
                    "'expect PROTOCOL: OUTCOME', or one of " + ", ".join(scenario.expectations)
                )
    if not made:
        raise UsageError(
            f"no scenario of {', '.join(selection.patterns)} says what it expects of "
            f"{', '.join(map(str, asked)) or target.name}; expected one that does"
        )
    return made


def variants_of(scenario: Scenario, target: Target, columns: Sequence[str]) -> list[Variant]:
    """
    Give what a scenario is played under: the target's protocols that it has an expectation for, then its mutants.

    Shapes:  with columns, those protocols alone and no mutant, also where a release stands for one of them.
    """
    ladder = [(Variant(protocol=name), rules) for name, rules in target.protocols().items()]
    known = [one for one in ladder if expectation_of(*one, scenario.expectations) is not None]
    if columns:
        return [variant for variant, rules in known if set(variant.names(rules)) & set(columns)]
    mutants = [
        Variant.parse(text, f"scenario {scenario.name}") for text in scenario.expectations if is_mutant(text)
    ]
    return [*(variant for variant, _ in known), *(one for one in mutants if one.protocol in target.protocols())]


def _rerun(selection: Selection, arguments: argparse.Namespace, one: Played) -> str:
    """The command that plays this cell alone."""
    words = {
        "SCENARIO": one.spec.scenario.name,
        "PROTOCOL": str(one.spec.variant),
        "SEED": str(one.spec.draw.seed),
        "HOST": arguments.host,
        "TARGET": "" if arguments.target == "broker" else arguments.target,
        "RULES": " ".join(arguments.rule or ()),
        "TIER": arguments.power_tier or "",
    }
    return f"make {selection.make} " + " ".join(f"{k}={shlex.quote(v)}" for k, v in words.items() if v)
