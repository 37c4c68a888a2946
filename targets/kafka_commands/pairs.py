"""
Scenarios on releases of Apache Kafka, and on our broker under the protocol to which each release corresponds.

A release has the expectation of that protocol, or its own expectation in the scenario's file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness.cluster.names import protocol_of
from harness.environment.needs import why_not_played
from harness.environment.real import RealEnvironment
from harness.hosts import MakeHost
from harness.model import FencepostError, PreconditionError, UsageError
from harness.report.conformance import Pair
from harness.run.failure import reason_of
from harness.run.folders import SERVICES
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.scenario.file import Scenario, draw
from harness.scenario.variant import Variant
from harness.suite.environments import closing, open_environment, require_abilities
from harness.suite.options import Options
from harness.suite.runner import SuiteRunner
from harness.suite.scenario_files import known_faults
from harness.target.services import Others
from harness.target.target import Target, traits_under
from targets import DEFAULT_TARGET
from targets.kafka import archive
from targets.kafka.properties import settings_of
from targets.kafka.releases import Entry, Release
from targets.kafka.target import entry_of

KAFKA: Final = "kafka"
# The scenarios that both can play, and the upgrade of Apache Kafka itself, whose jars ours has not.
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
    "upgrade-releases",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePair:
    """
    One scenario on one release, and on our broker.

    Attributes:
        theirs: the run on the release, None if it cannot play the scenario.
        ours: the run on our broker, None if the scenario expects nothing of it.
        why: the reason why the release cannot play it.
    """

    scenario: Scenario
    entry: Entry
    theirs: RunSpec | None
    ours: RunSpec | None
    why: str


def pairs_of(
    scenarios: Sequence[Scenario], chosen: Sequence[Entry], targets: Mapping[str, Target], options: Options
) -> list[ReleasePair]:
    """Return the pairs to play, scenario by scenario, releases in the order of the table."""
    found: list[ReleasePair] = []
    for scenario in scenarios:
        for entry in chosen:
            theirs = _spec(scenario, targets[KAFKA], entry.name, options, make="test-kafka")
            theirs = replace(theirs, version_option="--release")
            ours = _spec(scenario, targets[DEFAULT_TARGET], entry.models, options, make="scenarios")
            why = why_not(scenario, entry, theirs) or why_not_played(theirs, targets[KAFKA])
            found.append(
                ReleasePair(
                    scenario=scenario,
                    entry=entry,
                    theirs=None if why else theirs,
                    ours=None if why or ours.expectation is None else ours,
                    why=why,
                )
            )
    return found


def _spec(scenario: Scenario, target: Target, protocol: str, options: Options, *, make: str) -> RunSpec:
    return RunSpec(
        target=target.name,
        host=options.host,
        variant=Variant(protocol=protocol),
        rules=target.rules(protocol, ()),
        traits=traits_under(target, protocol, ()),
        scenario=scenario,
        draw=draw(scenario, options.seed),
        make=make,
        power_tier=options.power_tier,
        machines=str(options.machines or ""),
    )


def why_not(scenario: Scenario, entry: Entry, spec: RunSpec) -> str:
    """Return why a release cannot play a scenario, "" if it can."""
    if spec.expectation is None:
        return f"nothing is expected of {entry.models}"
    try:
        settings_of(scenario.settings, entry)
    except UsageError as error:
        return str(error)
    return ""


def releases_of(chosen: Sequence[Entry], pairs: Sequence[ReleasePair], kafka: Target) -> list[Release]:
    """Return the releases that are needed, each once: those chosen, and those that an upgrade installs."""
    entries = list(chosen)
    for spec in once(one.theirs for one in pairs):
        if spec.scenario is not None:
            installed = spec.scenario.under(spec.variant.names(spec.traits)).installed
            names = [protocol_of(name, spec.variant.protocol, KAFKA) for name in sorted(installed)]
            entries += [entry_of(kafka.rules(name, ())) for name in names]
    return list({entry.release.name: entry.release for entry in entries}.values())


def play_pairs(
    runner: SuiteRunner, make_host: MakeHost, targets: Mapping[str, Target], pairs: Sequence[ReleasePair]
) -> None:
    """Play the runs on releases, then those on our broker, in environments that share their services."""
    specs = {KAFKA: once(one.theirs for one in pairs), DEFAULT_TARGET: once(one.ours for one in pairs)}
    options = runner.options
    theirs = RealEnvironment(
        options.host, make_host=make_host, target=targets[KAFKA], power_tier=options.power_tier
    )
    with closing(theirs.close, runner.note):
        open_environment(theirs, runner.folder.path / SERVICES)
        names = dict.fromkeys(name for found in specs.values() for spec in found for name in spec.faults)
        require_abilities(theirs, known_faults(), names)
        ours = RealEnvironment(
            options.host,
            make_host=make_host,
            target=targets[DEFAULT_TARGET],
            power_tier=options.power_tier,
            shared=theirs.shared,
        )
        archive_classes(runner, make_host, theirs.shared, specs[KAFKA])
        for name, environment in ((KAFKA, theirs), (DEFAULT_TARGET, ours)):
            if specs[name]:
                runner.play_in(environment, specs[name])


def archive_classes(
    runner: SuiteRunner, make_host: MakeHost, shared: Others | None, specs: Sequence[RunSpec]
) -> None:
    """Make the missing class archives, so that brokers start faster; print a failure and continue without."""
    releases = {release.name: release for spec in specs if (release := entry_of(spec.rules).release)}
    wanted = [release for release in releases.values() if archive.lacks(release, runner.java)]
    if not wanted or shared is None:
        return
    host = make_host(runner.folder.path / "archives")
    if host.java:  # the nodes have another Java, which cannot use our archive
        return
    with closing(host.close, runner.note):
        try:
            host.open()
            for release in wanted:
                with runner.console.status(f"archiving the classes of Apache Kafka {release.name}"):
                    try:
                        archive.make(release, runner.java, host, shared, runner.say)
                    except PreconditionError as error:
                        runner.say(f"class archive: {error}; played without it")
        except (FencepostError, OSError) as error:
            runner.say(f"class archives: {reason_of(error)}; played without them")


def once(specs: Iterable[RunSpec | None]) -> list[RunSpec]:
    """Return each spec once, in order."""
    return list({spec.name: spec for spec in specs if spec is not None}.values())


def compared(pairs: Sequence[ReleasePair], results: Sequence[RunResult]) -> list[Pair]:
    """Return the report's pairs, with the results."""
    by_name = {(result.scenario, result.protocol): result for result in results}
    return [
        Pair(
            scenario=one.scenario.name,
            release=one.entry.name,
            models=one.entry.models,
            theirs=by_name[one.scenario.name, one.entry.name] if one.theirs else None,
            ours=by_name[one.scenario.name, one.entry.models] if one.ours else None,
            why=one.why,
        )
        for one in pairs
    ]
