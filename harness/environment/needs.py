"""What a run needs of its machines, which decides what its nodes and disks are made of, and of its target."""

from __future__ import annotations

from harness.ability import Ability
from harness.run.spec import RunSpec
from harness.scenario.steps import Inject
from harness.target.operator import lacking
from harness.target.target import Target
from nemesis import NEMESES


def needs_of(spec: RunSpec) -> frozenset[Ability]:
    """Return what the faults of a run's schedule need, and those that it was drawn from."""
    named = {NEMESES[name].needs for name in (*spec.faults, *spec.scenario.faults) if name in NEMESES}
    return frozenset(each for each in named if each is not None)


def why_not_played(spec: RunSpec, target: Target) -> str:
    """
    Return why a target cannot play a written scenario, "" if it can: what its steps ask of the system or await.

    A random schedule is played without the steps that its target cannot play.
    """
    if spec.random:
        return ""
    acts = [step.act for step in spec.scenario.under(spec.variant.names(spec.rules)).steps]
    faults = [NEMESES[act.fault].needs for act in acts if isinstance(act, Inject) and act.fault in NEMESES]
    needs = (*(need for need in faults if need is not None), *(need for act in acts for need in act.needs()))
    return next(filter(None, (lacking(target.name, target.abilities, need) for need in needs)), "")
