"""What a run needs of its machines, which decides what its nodes and disks are made of, and of its target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.ability import Ability
from harness.environment.of_target import why_lacking
from harness.environment.services import Own
from harness.run.environment import Environment
from harness.run.spec import RunSpec
from harness.scenario.file import Scenario
from harness.scenario.service_steps import hits_on_services, require_services, takes_power
from harness.scenario.steps import Act, Inject, Produce
from harness.target.operator import lacking
from harness.target.target import Target
from nemesis import faults_of


def needs_of(spec: RunSpec, target: Target) -> frozenset[Ability]:
    """
    Return what the faults of a run's schedule need, and those that it was drawn from.

    A random schedule may name a fault that hits no node of its target, such as `wake`: that needs nothing.
    """
    faults = faults_of(target)
    named = (faults[name].needs for name in (*spec.faults, *spec.scenario.faults) if name in faults)
    return frozenset(need for needs in named for need in needs if not why_lacking(target, need))


def own_services(spec: RunSpec, target: Target) -> Own:
    """
    Return the services that a run must not share with others.

    Raises:
        UsageError: the target has no such services, or a step's fault cannot hit them.
    """
    needs, asked, faults = needs_of(spec, target), spec.scenario.services, faults_of(target)
    require_services(spec.scenario, target, faults)
    lone = Ability.OWN_SERVICES in needs or any(hits_on_services(spec.scenario))
    counts: dict[str, int] = {}
    for service in target.services:
        if service.name in asked:
            counts[service.name] = asked[service.name]
        elif Ability.SERVICE_ENSEMBLE in needs:
            counts[service.name] = service.several
        elif lone:
            counts[service.name] = 1
    return Own(counts=counts, loses_power=takes_power(spec.scenario, faults))


def why_not_played(spec: RunSpec, target: Target) -> str:
    """
    Return why a target cannot play a written scenario, "" if it can: what its steps ask of the system or await.

    A random schedule is played without the steps that its target cannot play.
    """
    if spec.random:
        return ""
    acts = [step.act for step in spec.scenario.under(spec.variant.names(spec.traits)).steps]
    known = faults_of(target)
    asked = (known[act.fault].needs for act in acts if isinstance(act, Inject) and act.fault in known)
    needs = (need for each in (*asked, *(act.needs() for act in acts)) for need in each)
    lacks = (lacking(target.name, target.abilities, need) for need in needs)
    return next(filter(None, (*lacks, *_unsendable(acts, target))), "")


def _unsendable(acts: Sequence[Act], target: Target) -> Iterator[str]:
    """Yield what the target's client cannot send."""
    for act in acts:
        if isinstance(act, Produce) and (why := target.clients.unsendable(act.acks, act.codec or "none")):
            yield f"the client of {target.name} sends nothing with {why}"


def why_not_here(spec: RunSpec, target: Target, environment: Environment) -> str:
    """
    Return why an open environment cannot play a written scenario, "" if it can: what it lacks to hit services.

    What it lacks for a fault of nodes ends the command (harness/suite/environments.py).
    """
    return "" if spec.random else why_no_power_loss(spec.scenario, target, environment)


def why_no_power_loss(scenario: Scenario, target: Target, environment: Environment) -> str:
    """Return why an open environment cannot take the power of services as a schedule does, "" if it can."""
    if not takes_power(scenario, faults_of(target)):
        return ""
    return environment.lacks(Ability.SERVICE_POWER_LOSS)
