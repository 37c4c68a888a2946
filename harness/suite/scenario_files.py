"""Read scenario files with the project's tables of faults, targets and protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from harness.cluster.fault import Fault
from harness.registry import load
from harness.scenario import file as schedule
from harness.scenario.variant import Variants
from harness.target.target import Target
from nemesis import faults_of
from targets import TARGETS
from targets.broker_target import TARGET


def read_scenario(path: Path) -> schedule.Scenario:
    """Read a scenario file; raise UsageError for an error in it, with file, line and the nearest valid word."""
    return schedule.read_scenario(path, known_faults(), _variants())


@cache
def known_faults() -> Mapping[str, Fault]:
    """Return the faults that a scenario may name: the common ones, and those of every target."""
    targets: list[Target] = [load("target", TARGETS, name, "TARGET") for name in TARGETS]
    return faults_of(*targets)


@cache
def faults_on(target: str) -> Mapping[str, Fault]:
    """Return the faults of runs on a target, by its name: the common ones, and its own."""
    return faults_of(load("target", TARGETS, target, "TARGET"))


@cache
def _variants() -> Variants:
    """Return our protocols, the names of the other systems, and their releases as SYSTEM:RELEASE."""
    found = dict(TARGET.protocols())
    for system in (name for name in TARGETS if name != TARGET.name):
        target: Target = load("target", TARGETS, system, "TARGET")
        found[system] = {}
        found |= {f"{system}:{release}": rules for release, rules in target.protocols().items()}
    return Variants(protocols=found, change=_changed)


def _changed(protocol: str, changes: Sequence[str]) -> Mapping[str, str]:
    system, _, release = protocol.partition(":")
    if system not in TARGETS:
        return TARGET.rules(protocol, changes)
    target: Target = load("target", TARGETS, system, "TARGET")
    return target.rules(release, changes)
