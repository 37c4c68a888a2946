"""What a run's faults need of its machines, which decides what its nodes, disks and servers are made of."""

from __future__ import annotations

from collections.abc import Mapping

from harness.ability import Ability
from harness.run.spec import RunSpec
from harness.target.target import Target
from nemesis import faults_of


def needs_of(spec: RunSpec, target: Target) -> frozenset[Ability]:
    """Return what the faults of a run's schedule need, and those that it was drawn from."""
    faults = faults_of(target)
    named = {faults[name].needs for name in (*spec.faults, *spec.scenario.faults) if name in faults}
    return frozenset(each for each in named if each is not None)


def own_services(spec: RunSpec, target: Target) -> Mapping[str, int]:
    """Return the services that a run must not share with others, each with the number of its processes."""
    needs = needs_of(spec, target)
    own: dict[str, int] = {}
    for service in target.services:
        if Ability.SERVICE_ENSEMBLE in needs:
            own[service.name] = service.several
        elif Ability.OWN_SERVICES in needs:
            own[service.name] = 1
    return own
