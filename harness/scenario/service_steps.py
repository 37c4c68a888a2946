"""Checks what a schedule asks of a target's services, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.cluster.aims import SERVICE
from harness.cluster.fault import Fault
from harness.effect import UNFLUSHED_LOST
from harness.model import UsageError
from harness.scenario.file import Scenario
from harness.scenario.steps import Inject
from harness.target.services import governed_by_links
from harness.target.target import Target


def hits_on_services(scenario: Scenario) -> Iterator[Inject]:
    """Yield the steps that may hit processes of services."""
    words = {SERVICE, *scenario.service_words}
    for step in scenario.steps:
        if isinstance(step.act, Inject) and words & {*step.act.nodes}:
            yield step.act


def takes_power(scenario: Scenario, faults: Mapping[str, Fault]) -> bool:
    """Return True if a step takes the power of a service's disk."""
    return any(faults[act.fault].effect in UNFLUSHED_LOST for act in hits_on_services(scenario))


def require_services(scenario: Scenario, target: Target, faults: Mapping[str, Fault]) -> None:
    """
    Check that a target has the services that a schedule names, and that its faults can hit them.

    Raises:
        UsageError: it has no such service, or never so many processes of it; or a fault hits nodes alone.
    """
    known = {service.name: service for service in target.services}
    for name, count in scenario.services.items():
        if name not in known:
            has = f"expected one of {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{scenario.name}: services {name}: target {target.name} has no such service; {has}")
        if count not in (counts := sorted({1, known[name].several})):
            expected = " or ".join(map(str, counts))
            raise UsageError(f"{scenario.name}: services {name} {count}; target {target.name} has {expected}")
    for step in scenario.steps:
        if isinstance(step.act, Inject) and step.act.service is not None:
            _require_parting(f"{scenario.name}: {step.act}", step.act, target, faults)
    for act in hits_on_services(scenario):
        if not known:
            raise UsageError(f"{scenario.name}: {act}: target {target.name} has no service")
        if not faults[act.fault].of_services:
            able = ", ".join(name for name, fault in faults.items() if fault.of_services)
            raise UsageError(f"{scenario.name}: {act}: it hits nodes, and no service; expected one of {able}")


def _require_parting(where: str, act: Inject, target: Target, faults: Mapping[str, Fault]) -> None:
    """Check that a step which names a service to part nodes from can do so."""
    if not faults[act.fault].from_services:
        able = ", ".join(name for name, fault in faults.items() if fault.from_services)
        raise UsageError(f"{where}: it parts nodes from no service; expected one of {able}, or no 'from'")
    if not governed_by_links(target.services):
        raise UsageError(
            f"{where}: nodes of target {target.name} reach the metadata by one link; expected no 'from'"
        )
