"""
Read scenario files with the project's tables of faults, targets and versions.

A target's folder may have scenarios of its own, `scenarios/*.txt`, and a file `expectations.txt`, which says what
it expects of the others (harness/scenario/of_target.py). The shared files speak of the default target, and of
those whose versions correspond to versions of that; of any other target its own folder speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from harness import limits
from harness.cluster.fault import Fault
from harness.input_file import read_text
from harness.model import UsageError
from harness.scenario import file as schedule
from harness.scenario.of_target import OfTarget, parse_of_target
from harness.scenario.variant import Variants
from harness.target.found import Found, entry, found, target
from nemesis import faults_of
from targets import DEFAULT_TARGET
from workloads import SCENARIOS

FOLDER: Final = "scenarios"
EXPECTATIONS: Final = "expectations.txt"


def read_scenario(path: Path) -> schedule.Scenario:
    """Read a scenario file; raise UsageError for an error in it, with file, line and the nearest valid word."""
    return schedule.read_scenario(path, known_faults(), known_to(DEFAULT_TARGET))


def read_for(name: str, path: Path) -> schedule.Scenario:
    """
    Read a scenario file as a target plays it: of a shared one its folder says what is expected.

    Raises:
        UsageError: an error in the file, or in what the target's folder says of it.
    """
    scenario = schedule.read_scenario(path, known_faults(), known_to(name))
    if path.resolve().parent != SCENARIOS.resolve() or _is_spoken_of(name):
        return scenario
    return _expectations(name, known_to(name)).applied(scenario)


def files_for(name: str, patterns: Sequence[str]) -> Mapping[str, Path]:
    """
    Return name -> file of the scenarios that match: the shared ones, pattern by pattern, then the target's own.

    Raises:
        UsageError: a scenario of the target has the name of a shared one.
    """
    shared = {path.stem: path for each in patterns for path in sorted(SCENARIOS.glob(f"{each}.txt"))}
    own = {path.stem: path for each in patterns for path in own_files(name, f"{each}.txt")}
    for stem, path in own.items():
        if (SCENARIOS / path.name).exists():
            raise UsageError(f"{path}: scenario {stem} is a shared one; expected another name")
    return {**shared, **own}


def own_files(name: str, pattern: str = "*.txt") -> list[Path]:
    """Return the files of a target's own scenarios; [] for a target that is not found."""
    one = found().get(name)
    return [] if one is None or one.folder is None else sorted((one.folder / FOLDER).glob(pattern))


def expectations_again(name: str, scenario: str) -> Mapping[str, str]:
    """
    Return what is expected of a scenario on a target, as far as its files are there; the target is not imported.

    Raises:
        UsageError: an error in a file.
    """
    for path in own_files(name, "*.txt"):
        if path.stem == scenario:
            return schedule.read_scenario(path, known_faults()).expectations
    if SCENARIOS / f"{scenario}.txt" not in SCENARIOS.glob("*.txt"):
        return {}
    read = schedule.read_scenario(SCENARIOS / f"{scenario}.txt", known_faults())
    said = _expectations(name, None)
    return said.applied(read).expectations if said.scenarios else read.expectations


def _is_spoken_of(name: str) -> bool:
    """Return whether shared files have expectations of a target: it is the default one, or corresponds to it."""
    return name == DEFAULT_TARGET or any(target(name).traits(each, ()).models for each in _protocols(entry(name)))


def _expectations(name: str, own: Variants | None) -> OfTarget:
    """Return what a target's folder says of the shared scenarios: nothing without a file."""
    one = found().get(name)
    path = Path(EXPECTATIONS) if one is None or one.folder is None else one.folder / EXPECTATIONS
    there = one is not None and one.folder is not None and path.is_file()
    text = read_text(path, "a target's expectations", limits.SCENARIO_BYTES_MAX) if there else ""
    said = parse_of_target(text, str(path), own, own and known_to(DEFAULT_TARGET))
    for scenario in said.scenarios:
        if SCENARIOS / f"{scenario}.txt" not in SCENARIOS.glob("*.txt"):
            raise UsageError(f"{path}: no scenario {scenario!r}; expected a shared one: `fencepost scenarios`")
    return said


@cache
def known_faults() -> Mapping[str, Fault]:
    """Return the faults that a scenario may name: the common ones, and those of every target."""
    return faults_of(*(each.load() for each in found().values() if not each.why_not()))


@cache
def faults_on(name: str) -> Mapping[str, Fault]:
    """Return the faults of runs on a target, by its name: the common ones, and its own."""
    return faults_of(target(name))


@cache
def _protocols(one: Found) -> Mapping[str, Mapping[str, str]]:
    return one.load().protocols()


class _Versions(Mapping[str, Mapping[str, str]]):
    """
    The versions that files may name, each with its rules: a target's, the default one's, others as TARGET:VERSION.

    The name of a target alone stands for all of its versions. A target is imported when a file names it.
    """

    def __init__(self, own: str) -> None:
        self._own = own

    def __getitem__(self, name: str) -> Mapping[str, str]:
        system, colon, version = name.partition(":")
        if (mine := _protocols(entry(self._own))).get(name) is not None:
            return mine[name]
        if system == DEFAULT_TARGET or system not in found():
            return _protocols(entry(DEFAULT_TARGET))[name]
        return _protocols(entry(system))[version] if colon else {}

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*_protocols(entry(self._own)), *_protocols(entry(DEFAULT_TARGET))])
        others = [each for each in found().values() if each.name != DEFAULT_TARGET]
        yield from (each.name for each in others)
        for each in others:
            try:
                versions = list(_protocols(each))
            except UsageError:
                continue  # it is told to who names it
            yield from (f"{each.name}:{version}" for version in versions)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def changed(self, name: str, changes: Sequence[str]) -> Mapping[str, str]:
        """Return the rules of a version with changes."""
        system, _, version = name.partition(":")
        if name in _protocols(entry(self._own)):
            return target(self._own).rules(name, changes)
        if system == DEFAULT_TARGET or system not in found():
            return target(DEFAULT_TARGET).rules(name, changes)
        return target(system).rules(version, changes)


def known_to(name: str) -> Variants:
    """Return what a file may name if it is read for a target."""
    versions, wire = _Versions(name), target(name).wire
    return Variants(protocols=versions, change=versions.changed, messages=() if wire is None else wire.messages)
