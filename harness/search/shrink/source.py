"""What is to be shrunk, as the user named it: a schedule, a run's folder, or its history."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness import limits
from harness.events import Setup
from harness.input_file import open_file
from harness.model import HistoryError, Op, UsageError
from harness.run.spec import ALIKE
from harness.run.store import Run
from harness.scenario.file import Scenario, parse
from harness.scenario.variant import Variant
from harness.suite.scenario_files import known_faults, read_scenario
from harness.target.found import target
from harness.target.target import traits_under
from targets import DEFAULT_TARGET

HISTORY: Final = "history.jsonl"
PROTOCOL: Final = "kip380"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """
    A schedule that was found, and the run in which it was.

    Attributes:
        folder: where the shrunk schedule is written, unless told otherwise.
        protocol, rules: the protocol, and the value of each of its rules.
        seed: the seed of the run.
        alike: whether the run asked only for elections that every target could grant, as its history says.
    """

    scenario: Scenario
    folder: Path
    protocol: str
    rules: Mapping[str, str]
    seed: int
    alike: bool


def read_source(path: Path, *, protocol: str | None, rules: tuple[str, ...], seed: int | None) -> Source:
    """
    Read a schedule, and from its run's history what the options do not say.

    Args:
        path: a schedule's file, a run's folder, or its history; beside a schedule of a stored run is its history.
        protocol: a protocol or a mutant of one; None for that of the run.
        rules: rules that are changed in it, as "rule=value".
        seed: None for that of the run.

    Raises:
        UsageError: nothing can be read there, or neither the file nor the options say what is needed.
    """
    history = _history_of(path)
    setup = _setup_of(history) if history is not None else None
    if setup is not None and setup.target != DEFAULT_TARGET and protocol is None:
        raise UsageError(
            f"{path}: a run of {setup.target}; expected one of {DEFAULT_TARGET}, which the simulator runs; name "
            "the protocol of ours to shrink it on (--protocol)"
        )
    if setup is not None and (os.path.isdir(path) or path == history):
        scenario = _schedule_of(setup, str(history))
    else:
        scenario = read_scenario(path)
    seed = seed if seed is not None else setup.seed if setup else None
    if seed is None:
        raise UsageError(f"{path}: no history beside it says its seed; expected the option --seed")
    named, values = _rules(protocol, rules, setup)
    return Source(
        scenario=scenario.under(Variant(protocol=named).names(traits_under(target(DEFAULT_TARGET), named, ()))),
        folder=path if os.path.isdir(path) else path.parent,
        protocol=named,
        rules=values,
        seed=seed,
        alike=setup is not None and (setup.target != DEFAULT_TARGET or ALIKE in (setup.again or "").split()),
    )


def _rules(protocol: str | None, rules: tuple[str, ...], setup: Setup | None) -> tuple[str, Mapping[str, str]]:
    """Return the protocol, and the value of each rule."""
    ours = target(DEFAULT_TARGET)
    if protocol is None and setup is not None:
        own = ours.rules(setup.protocol, ())
        changed = [f"{name}={value}" for name, value in setup.rules.items() if own.get(name) != value]
        return setup.protocol, ours.rules(setup.protocol, [*changed, *rules])
    variant = Variant.parse(protocol or PROTOCOL, "option --protocol")
    return variant.protocol, ours.rules(variant.protocol, [*variant.changes, *rules])


def _history_of(path: Path) -> Path | None:
    """Return the history that belongs to a path, None if there is none."""
    if os.path.isdir(path):
        if not os.path.lexists(path / HISTORY):
            why = "" if os.access(path, os.R_OK | os.X_OK) else f"{os.strerror(errno.EACCES)}; "
            raise UsageError(
                f"{path}: {why}no {HISTORY} there; expected a run's folder, its history or a schedule"
            )
        return path / HISTORY
    if path.suffix == Path(HISTORY).suffix:
        return path
    beside = path.parent / HISTORY
    return beside if path.name == Run(path=path.parent).schedule.name and os.path.exists(beside) else None


def _setup_of(path: Path) -> Setup:
    """Return the first event of a history; the rest of it is not read."""
    with open_file(path, "the history of a run") as file:
        line = file.readline(limits.SCENARIO_BYTES_MAX)
    try:
        event = Op.from_json(line.decode("utf-8")).event
    except (HistoryError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}:1: {error}; expected the history of a run") from error
    if not isinstance(event, Setup):
        raise UsageError(f"{path}:1: a line about something else; expected the setup of a run")
    return event


def _schedule_of(setup: Setup, where: str) -> Scenario:
    """Return the schedule that a history has."""
    if not setup.schedule:
        raise UsageError(f"{where}: no schedule in its first line; expected a run of this release; run it again")
    scenario = parse(setup.scenario, setup.schedule, f"{where}: schedule", known_faults())
    return replace(scenario, name=setup.scenario)
