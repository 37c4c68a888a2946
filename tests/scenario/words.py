"""Reads steps and conditions from their text, for tests; every fault of the table may be named."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from harness.scenario.condition_types import CONDITIONS
from harness.scenario.grammar import Line, Names
from harness.scenario.steps import STEPS
from harness.workload.plan import Place
from tests.faults import NEMESES

PLACES = tuple(Place("orders", number) for number in range(3))


def names(faults: Collection[str] = tuple(NEMESES)) -> Names:
    return Names(nodes=("A", "B", "C", "D"), groups=("m1", "m2"), faults=faults, places=PLACES)


def step(text: str, faults: Collection[str] = tuple(NEMESES)) -> Any:
    """Read a step of a scenario with nodes A to D and records m1 and m2."""
    return Line(text, "test.txt:1", names(faults)).read(STEPS)


def condition(text: str) -> Any:
    """Read a condition of such a scenario."""
    return Line(text, "test.txt:1", names()).read(CONDITIONS)
