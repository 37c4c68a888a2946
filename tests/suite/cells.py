"""Every cell that the scenarios name."""

from __future__ import annotations

from harness.cell import CellSpec

from harness.cli.suites import variants_of
from harness.schedule import draw, read_scenario
from harness.target import Target
from harness.variant import Variant
from workloads import SCENARIOS


def names() -> list[str]:
    """All scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.txt"))


def variants(scenario: str, target: Target) -> list[Variant]:
    """What a scenario says something of."""
    return variants_of(read_scenario(SCENARIOS / f"{scenario}.txt"), target, ())


def spec_of(scenario: str, variant: Variant, target: Target, seed: int) -> CellSpec:
    """The cell of a scenario and a variant."""
    read = read_scenario(SCENARIOS / f"{scenario}.txt")
    rules = target.rules(variant.protocol, variant.changes)
    return CellSpec(scenario=read, draw=draw(read, seed), variant=variant, rules=rules)
