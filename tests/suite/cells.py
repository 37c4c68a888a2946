"""Specs of all runs that the scenario files name."""

from __future__ import annotations

from harness.cli.suites import variants_of
from harness.run.spec import RunSpec
from harness.scenario.file import draw
from harness.scenario.variant import Variant
from harness.suite.scenario_files import read_scenario
from harness.target.target import Target
from workloads import SCENARIOS


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.txt"))


def variants(scenario: str, target: Target) -> list[Variant]:
    """Return the variants that a scenario has an expectation for."""
    return variants_of(read_scenario(SCENARIOS / f"{scenario}.txt"), target, ())


def spec_of(
    scenario: str, variant: Variant, target: Target, seed: int, *, changes: tuple[str, ...] = (), host: str = "sim"
) -> RunSpec:
    """Return the spec of a scenario's run under a variant."""
    read = read_scenario(SCENARIOS / f"{scenario}.txt")
    return RunSpec(
        target=target.name,
        host=host,
        variant=variant,
        changes=changes,
        rules=target.rules(variant.protocol, (*variant.changes, *changes)),
        traits=target.traits(variant.protocol, (*variant.changes, *changes)),
        scenario=read,
        draw=draw(read, seed),
        make="scenarios",
    )
