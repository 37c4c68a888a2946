"""Read scenario files with the project's tables of faults, targets and protocols."""

from __future__ import annotations

from pathlib import Path

from harness.scenario import file as schedule
from nemesis import NEMESES
from targets import TARGETS
from targets.broker_target import TARGET


def read_scenario(path: Path) -> schedule.Scenario:
    """Read a scenario file; raise UsageError for an error in it, with file, line and the nearest valid word."""
    others: dict[str, dict[str, str]] = {name: {} for name in TARGETS if name != TARGET.name}
    return schedule.read_scenario(path, NEMESES, {**TARGET.protocols(), **others})
