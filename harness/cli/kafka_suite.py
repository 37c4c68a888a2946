"""
`fencepost test-kafka`: the scenarios that both can play, on releases of Apache Kafka and on our broker beside it.

Each release is expected to show what the protocol shows to which it corresponds, or what the scenario's file says
of that very release. Prints one table scenario x release, ours beside theirs, and names the report to open.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rich.console import Console

from harness.cell import CellSpec, Played
from harness.cli.beside import spark_beside
from harness.cli.course import Course, configure_course, seed_of
from harness.cli.grounds import RealGround
from harness.cli.interrupts import INTERRUPTS, apart
from harness.cli.judging import exit_code
from harness.cli.suites import scenario_files
from harness.hosts import HOSTS, MakeHost
from harness.hosts.base import Address
from harness.model import EXIT_CODES, PreconditionError, UsageError
from harness.registry import load, pick
from harness.report.conformance import Pair, render_conformance
from harness.schedule import Scenario, draw, read_scenario
from harness.suite import Cell
from harness.target import Target
from harness.variant import Variant
from targets import TARGETS
from targets.kafka import archive
from targets.kafka.fetch import PlainSource, default_source, fetch
from targets.kafka.jars import cache_dir
from targets.kafka.properties import settings_of
from targets.kafka.releases import Entry, entries
from targets.kafka.target import entry_of

PATTERNS: Final = (
    "kip101-1-elect",
    "kip101-1b-elect",
    "kip101-2",
    "kip101-appendix-a",
    "kafka-6361-elect-*",
    "kafka-7415a",
    "kafka-7128",
    "kafka-7164",
    "kafka-6880",
    "kafka-9338",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """
    One scenario on one release: the cell to play and ours beside it.

    Shapes:  theirs None: it cannot be played, for the reason in why; ours None: nothing is expected of our broker.
    """

    scenario: Scenario
    entry: Entry
    theirs: CellSpec | None
    ours: CellSpec | None
    why: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--release",
        action="append",
        metavar="NAME",
        help="only this release or variant, such as 3.9.1 or 2.1.1@1.1; may be repeated",
    )
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this scenario; may be repeated")
    parser.add_argument(
        "--repository", metavar="URL", help="take jars that are not here from this Maven repository"
    )
    configure_course(parser, HOSTS)


def run(arguments: argparse.Namespace) -> int:
    """
    Fetch what is missing, play, judge, compare; see EXIT_CODES.

    Raises:  UsageError, which is exit code 2, also when jars are missing and cannot be had.
    """
    console = Console()
    seed = seed_of(arguments)
    chosen = [pick("release of Apache Kafka", entries(), name) for name in arguments.release or entries()]
    targets = {name: _target(name) for name in ("kafka", "broker")}
    crossings = crossings_of(_scenarios(arguments), chosen, targets, seed)
    specs = {"kafka": _once(one.theirs for one in crossings), "broker": _once(one.ours for one in crossings)}
    make_host = partial(pick("host", HOSTS, arguments.host), ports=arguments.ports)
    source = PlainSource(arguments.repository) if arguments.repository else default_source()
    releases = list({entry.release.name: entry.release for entry in chosen}.values())
    fetch(releases, cache_dir(), source, partial(console.print, highlight=False, markup=False, soft_wrap=True))
    about = f"{len(specs['kafka'])} cells on {len(chosen)} of Apache Kafka, {len(specs['broker'])} on our broker"
    course = Course.begin("test-kafka", arguments, seed, about, console)
    with spark_beside(course.java.home) as spark:
        played = _play(course, make_host, targets, specs, arguments.power_tier)
        suite, report = course.conclude(spark, played, partial(_rerun, arguments), "kafka, broker")
    cells = {(cell.scenario, cell.protocol): cell for cell in suite.cells}
    render_conformance(suite, [_pair(one, cells) for one in crossings], console)
    console.print(f"report: {report}", highlight=False, markup=False, soft_wrap=True)
    return exit_code(suite.cells, EXIT_CODES)


def crossings_of(
    scenarios: Sequence[Scenario], chosen: Sequence[Entry], targets: Mapping[str, Target], seed: int
) -> list[Crossing]:
    """Give what is to be played, scenario by scenario, releases in the order of the table."""
    ours = targets["broker"].protocols()
    found: list[Crossing] = []
    for scenario in scenarios:
        drawn = draw(scenario, seed)
        for entry in chosen:
            theirs = CellSpec(
                scenario=scenario,
                draw=drawn,
                variant=Variant(protocol=entry.name),
                rules=targets["kafka"].rules(entry.name, ()),
            )
            beside = CellSpec(
                scenario=scenario, draw=drawn, variant=Variant(protocol=entry.models), rules=ours[entry.models]
            )
            why = why_not(scenario, entry, theirs)
            found.append(
                Crossing(
                    scenario=scenario,
                    entry=entry,
                    theirs=None if why else theirs,
                    ours=None if why or beside.expectation is None else beside,
                    why=why,
                )
            )
    return found


def why_not(scenario: Scenario, entry: Entry, spec: CellSpec) -> str:
    """Say why a release cannot play a scenario, "" when it can."""
    if spec.expectation is None:
        return f"nothing is expected of {entry.models}"
    try:
        settings_of(scenario.settings, entry)
    except UsageError as error:
        return str(error)
    return ""


def _scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    """Those that were asked for, else all that both can play."""
    files = scenario_files(("*",))
    return [
        read_scenario(pick("scenario", files, name)) for name in arguments.scenario or scenario_files(PATTERNS)
    ]


def _target(name: str) -> Target:
    found: Target = load("target", TARGETS, name, "TARGET")
    return found


def _play(
    course: Course,
    make_host: MakeHost,
    targets: Mapping[str, Target],
    specs: Mapping[str, Sequence[CellSpec]],
    power_tier: str | None,
) -> list[Played]:
    """Play theirs, then ours, on grounds that share one ZooKeeper."""
    host = course.arguments.host
    theirs = RealGround(host, make_host=make_host, target=targets["kafka"], power_tier=power_tier)
    try:
        apart(lambda: theirs.open(course.folder.path / "zookeeper"), "ground")
        ours = RealGround(
            host,
            make_host=make_host,
            target=targets["broker"],
            power_tier=power_tier,
            zookeeper=theirs.zookeeper,
        )
        archive_classes(course, make_host, theirs.zookeeper, specs["kafka"])
        grounds = {"kafka": theirs, "broker": ours}
        return [
            one
            for name, ground in grounds.items()
            if specs[name]
            for one in course.play_on(ground, targets[name], specs[name])
        ]
    finally:
        with INTERRUPTS.shielded():
            theirs.close()


def archive_classes(
    course: Course, make_host: MakeHost, zookeeper: Address | None, specs: Sequence[CellSpec]
) -> None:
    """Make the class archives that are lacking, so that brokers start in less time; one that fails is told of."""
    releases = {release.name: release for spec in specs if (release := entry_of(spec.rules).release)}
    wanted = [release for release in releases.values() if archive.lacks(release, course.java)]
    if not wanted or zookeeper is None:
        return
    host = make_host(course.folder.path / "archives")
    if host.java:  # an archive is of one Java, and the nodes have another
        return
    try:
        host.open()
        for release in wanted:
            with course.console.status(f"archiving the classes of Apache Kafka {release.name}"):
                try:
                    archive.make(release, course.java, host, zookeeper, course.say)
                except PreconditionError as error:
                    course.say(f"class archive: {error}; played without it")
    finally:
        with INTERRUPTS.shielded():
            host.close()


def _once(specs: Iterable[CellSpec | None]) -> list[CellSpec]:
    return list({spec.name: spec for spec in specs if spec is not None}.values())


def _pair(one: Crossing, cells: Mapping[tuple[str, str], Cell]) -> Pair:
    return Pair(
        scenario=one.scenario.name,
        release=one.entry.name,
        models=one.entry.models,
        theirs=cells[one.scenario.name, one.entry.name] if one.theirs else None,
        ours=cells[one.scenario.name, one.entry.models] if one.ours else None,
        why=one.why,
    )


def _rerun(arguments: argparse.Namespace, one: Played) -> str:
    """The command that plays this cell alone."""
    name, variant = one.spec.scenario.name, one.spec.variant
    where = f"SEED={one.spec.draw.seed} HOST={arguments.host}"
    if variant.protocol in entries():
        return f"make test-kafka SCENARIO={name} RELEASE={variant} {where}"
    return f"make scenarios SCENARIO={name} PROTOCOL={variant} {where}"
