"""Prints a scenario as the text of its file, for random schedules."""

from __future__ import annotations

from typing import Final

from harness.scenario.file import Scenario
from harness.scenario.heads import Count
from harness.target.settings import Settings
from harness.workload.plan import Clients
from harness.workload.text import line_of

# Title, source, nodes, records, settings.
_HEAD_LINES: Final = 5


def first_step_line(further: int, clients: Clients) -> int:
    """Return the line of the first step, if the scenario has one source: it follows the head and an empty line."""
    return _HEAD_LINES + further + clients.count + 2


def first_line(scenario: Scenario) -> int:
    """Return the line of the first step in a scenario's text, whatever its head has."""
    further = first_step_line(len(scenario.further), scenario.clients)
    return further + len(scenario.services) + len(scenario.sources) - 1


def text_of(scenario: Scenario) -> str:
    """
    Return a scenario as the text of its file; parsing the text returns the same scenario.

    Expectations and comments are left out: a random schedule has none.
    """
    heads = [
        f"title    {scenario.title}",
        *(f"source   {source}" for source in scenario.sources),
        f"nodes    {' '.join(scenario.replicas)} replicas{_controller(scenario)}{_others(scenario)}",
        f"records  {', '.join(map(_count, scenario.records))}",
        f"settings {' '.join(_settings(scenario.settings))}",
        *(f"partition {place} {' '.join(replicas)}" for place, replicas in scenario.further.items()),
        *(f"producer {line_of(plan)}" for plan in scenario.clients.producers),
        *(f"consumer {line_of(plan)}" for plan in scenario.clients.consumers),
        *(f"churner {line_of(plan)}" for plan in scenario.clients.churners),
        *(f"services {name} {count}" for name, count in scenario.services.items()),
    ]
    return "\n".join([*heads, "", *(step.text for step in scenario.steps), ""])


def _controller(scenario: Scenario) -> str:
    return f", {scenario.nodes[0]} controller" if scenario.names_controller else ""


def _others(scenario: Scenario) -> str:
    others = [name for name in scenario.nodes[1:] if name not in scenario.replicas]
    return f", {' '.join(others)} others" if others else ""


def _count(count: Count) -> str:
    low, high = (f"{count.base}+{number}" if count.base else f"{number}" for number in (count.low, count.high))
    return f"{count.name} {low}" if low == high else f"{count.name} {low}..{high}"


def _settings(settings: Settings) -> list[str]:
    found = [
        f"unclean_election={'yes' if settings.unclean_election else 'no'}",
        f"min_isr={settings.min_isr}",
        f"message_format={settings.message_format.value}",
        f"heal_within_s={settings.heal_within_s:g}",
    ]
    usual = Settings()
    changed = (
        "replica_lag_ms_max",
        "flush_messages",
        "segment_bytes",
        "retention_ms",
        "retention_bytes",
        "delete_retention_ms",
        "keys",
        "controlled_shutdown_ms",
    )
    values = {name: getattr(settings, name) for name in changed}
    found += [f"{name}={value}" for name, value in values.items() if value != getattr(usual, name)]
    if settings.tombstones:
        found.append(f"tombstones={','.join(settings.tombstones)}")
    return [*found, *(["compact=yes"] if settings.compact else [])]
