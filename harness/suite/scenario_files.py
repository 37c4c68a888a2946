"""Read scenario files with the project's tables of faults, targets and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.model import UsageError
from harness.scenario import file as schedule
from harness.scenario.variant import Variants
from harness.target.found import found, target
from nemesis import NEMESES
from targets import DEFAULT_TARGET


def read_scenario(path: Path) -> schedule.Scenario:
    """Read a scenario file; raise UsageError for an error in it, with file, line and the nearest valid word."""
    return schedule.read_scenario(path, NEMESES, KNOWN)


class _Versions(Mapping[str, Mapping[str, str]]):
    """
    The versions that files may name, each with its rules: the default target's, and others as TARGET:VERSION.

    The name of a target alone stands for all of its versions. A target is imported when a file names it.
    """

    def __getitem__(self, name: str) -> Mapping[str, str]:
        system, colon, version = name.partition(":")
        if system == DEFAULT_TARGET or system not in found():
            return target(DEFAULT_TARGET).protocols()[name]
        return target(system).protocols()[version] if colon else {}

    def __iter__(self) -> Iterator[str]:
        yield from target(DEFAULT_TARGET).protocols()
        others = [each for each in found().values() if each.name != DEFAULT_TARGET]
        yield from (each.name for each in others)
        for each in others:
            try:
                versions = list(each.load().protocols())
            except UsageError:
                continue  # it is told to who names it
            yield from (f"{each.name}:{version}" for version in versions)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _changed(name: str, changes: Sequence[str]) -> Mapping[str, str]:
    system, _, version = name.partition(":")
    if system == DEFAULT_TARGET or system not in found():
        return target(DEFAULT_TARGET).rules(name, changes)
    return target(system).rules(version, changes)


KNOWN: Final = Variants(protocols=_Versions(), change=_changed)
