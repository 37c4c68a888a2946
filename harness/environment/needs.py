"""What a run's faults need of its machines, which decides what its nodes, disks and servers are made of."""

from __future__ import annotations

from harness.ability import Ability
from harness.run.spec import RunSpec
from nemesis import NEMESES


def needs_of(spec: RunSpec) -> frozenset[Ability]:
    """Return what the faults of a run's schedule need, and those that it was drawn from."""
    named = {NEMESES[name].needs for name in (*spec.faults, *spec.scenario.faults) if name in NEMESES}
    return frozenset(each for each in named if each is not None)
