"""Scenario files read with the tables of this project: its faults, its targets, its broker's protocols."""

from __future__ import annotations

from pathlib import Path

from harness.scenario import file as schedule
from nemesis import NEMESES
from targets import TARGETS
from targets.broker_target import TARGET


def read_scenario(path: Path) -> schedule.Scenario:
    """Read a scenario file; UsageError for whatever in it is wrong, with file, line and the nearest word."""
    others: dict[str, dict[str, str]] = {name: {} for name in TARGETS if name != TARGET.name}
    return schedule.read_scenario(path, NEMESES, {**TARGET.protocols(), **others})
