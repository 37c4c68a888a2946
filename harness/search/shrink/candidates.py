"""Candidates: schedules with fewer steps, whose text can be read as a scenario file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, replace

from harness.model import UsageError
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.scenario.file import Scenario, Step
from harness.scenario.offsets import Mark
from harness.scenario.step_order import check_order, check_records
from harness.scenario.steps import Act, Await, Produce, Require
from harness.scenario.text import first_line


def with_acts(scenario: Scenario, acts: Sequence[Act]) -> Scenario:
    """
    Return the scenario with these steps, without those that lost their reason, and with the records they name.

    A step loses its reason with the step that it is about: a release of no hold, a heal of no rule, an offset of
    records that nobody sends. Lines are numbered as the text has them.
    """
    kept: list[Act] = []
    sent = [("", act) for act in acts if isinstance(act, Produce)]
    for act in acts:
        try:
            check_order([("", each) for each in (*kept, act)])
            check_records([*sent, ("", act)], {})
        except UsageError:
            continue
        kept.append(act)
    steps = tuple(Step(line=line, act=act) for line, act in enumerate(kept, start=first_line(scenario)))
    named = groups_of(kept) | {*FINAL_RECORDS}
    bases = {count.base for count in scenario.records if count.name in named}
    records = tuple(count for count in scenario.records if count.name in named | bases)
    records = records or scenario.records[:1]  # a head has some
    left = {count.name for count in records}
    tombstones = tuple(name for name in scenario.settings.tombstones if name in left)
    settings = replace(scenario.settings, tombstones=tombstones)
    return replace(scenario, steps=steps, records=records, settings=settings)


def acts_of(scenario: Scenario) -> list[Act]:
    """Return the scenario's steps without their lines and comments."""
    return [step.act for step in scenario.steps]


def without(scenario: Scenario, at: Collection[int]) -> Scenario:
    """Return the scenario without the steps at these positions."""
    return with_acts(scenario, [act for index, act in enumerate(acts_of(scenario)) if index not in at])


def without_lines(scenario: Scenario, lines: Collection[int]) -> Scenario:
    """Return the scenario without the steps on these lines."""
    return with_acts(scenario, [step.act for step in scenario.steps if step.line not in lines])


def replaced(scenario: Scenario, at: int, *acts: Act) -> Scenario:
    """Return the scenario with these steps in place of the one at this position."""
    before = acts_of(scenario)
    return with_acts(scenario, [*before[:at], *acts, *before[at + 1 :]])


def groups_of(acts: Collection[Act]) -> set[str]:
    """Return the groups of records that steps send or name."""
    sent = {act.group for act in acts if isinstance(act, Produce)}
    return sent | {mark.name for act in acts for mark in _marks(act)}


def _marks(act: Act) -> Iterator[Mark]:
    about = act.condition if isinstance(act, Await | Require) else act
    for each in fields(about):
        value = getattr(about, each.name)
        if isinstance(value, Mark):
            yield value


def as_written(scenario: Scenario) -> Scenario:
    """Return a random schedule as a written scenario: in a plain world, and each step must be applicable."""
    records = tuple(count for count in scenario.records if count.name not in FINAL_RECORDS)
    return replace(scenario, records=records)
