"""
What a target says of scenarios that are not its own: what it expects, and its words for their conditional steps.

    # the steps that are for kip380 are also for these versions
    as 1, 1-early: kip380

    scenario kip101-2
    # in this scenario alone
    as 1: kip101, kip380
    expect 1: none
    expect 1-early: lost m2 A

Lines of `as` before the first `scenario` are for all scenarios. `expect` is that of a scenario's file, with the
target's own versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from harness.model import UsageError
from harness.registry import nearest
from harness.scenario.expectation import check_expectation
from harness.scenario.file import Scenario, Step, check_sent_once, variant_text
from harness.scenario.lines import RawLine, lines_of
from harness.scenario.variant import Variants

_T = TypeVar("_T")
_WORDS = ("as", "expect", "scenario")


@dataclass(slots=True)
class Section:
    """
    What is said of one scenario.

    Attributes:
        words: version -> the names whose steps it plays too.
        expectations: version, or a mutant of one -> the outcome, and where that is written.
    """

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    expectations: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTarget:
    """What a file says: of all scenarios, and of each."""

    where: str
    general: Section
    scenarios: Mapping[str, Section]

    def applied(self, scenario: Scenario) -> Scenario:
        """
        Return the scenario as the target plays it: with its own expectations alone, and its words.

        Raises:
            UsageError: an expectation names a node or a record that the scenario does not have.
        """
        section = self.scenarios.get(scenario.name, Section())
        for outcome, where in section.expectations.values():
            try:
                check_expectation(outcome, scenario.nodes, [count.name for count in scenario.records])
            except UsageError as error:
                raise UsageError(f"{where}: {error}") from error
        words = {**self.general.words, **section.words}
        steps = tuple(_also_for(step, words) for step in scenario.steps)
        check_sent_once(steps, f"{self.where}: scenario {scenario.name}")
        expectations = {version: outcome for version, (outcome, _) in section.expectations.items()}
        return replace(scenario, steps=steps, expectations=expectations)


def parse_of_target(
    text: str, where: str, own: Variants | None = None, shared: Variants | None = None
) -> OfTarget:
    """
    Read such a file.

    Args:
        text: the file's text.
        where: the file, for errors.
        own: the versions of the target; None skips this check.
        shared: the names that scenarios may have; None skips this check.

    Raises:
        UsageError: a line is wrong; with the place, what was found and what was expected.
    """
    general, scenarios = Section(), dict[str, Section]()
    section = general
    for line in lines_of(text, where):
        if not line.text or line.text.startswith("#"):
            continue
        if line.word == "scenario":
            if not line.rest or line.rest in scenarios:
                raise UsageError(f"{line.where}: {line.text!r}; expected 'scenario NAME', each once")
            section = scenarios.setdefault(line.rest, Section())
        elif line.word == "as":
            names, values = _halves(line)
            section.words |= _once(line, section.words, names, own, tuple(_each(line, values, shared)))
        elif line.word == "expect" and section is not general:
            names, outcome = _halves(line)
            section.expectations |= _once(line, section.expectations, names, own, (outcome, line.where))
        elif line.word == "expect":
            raise UsageError(f"{line.where}: {line.text!r}; expected a line 'scenario NAME' before it")
        else:
            near = nearest(line.word, _WORDS)
            raise UsageError(f"{line.where}: {line.text!r}; expected a line of {', '.join(_WORDS)}{near}")
    return OfTarget(where=where, general=general, scenarios=scenarios)


def _halves(line: RawLine) -> tuple[str, str]:
    names, colon, rest = line.rest.partition(": ")
    if not colon or not rest.strip():
        what = "OUTCOME" if line.word == "expect" else "PROTOCOL[, PROTOCOL]"
        raise UsageError(f"{line.where}: {line.text!r}; expected '{line.word} VERSION[, VERSION]: {what}'")
    return names, rest.strip()


def _each(line: RawLine, names: str, known: Variants | None) -> list[str]:
    return [variant_text(name, line.where, known) for name in names.split(",")]


def _once(line: RawLine, there: Mapping[str, _T], names: str, known: Variants | None, value: _T) -> dict[str, _T]:
    """Return the value for each version that a line names; refuse a version that has one already."""
    versions = _each(line, names, known)
    if twice := next((each for at, each in enumerate(versions) if each in there or each in versions[:at]), None):
        raise UsageError(f"{line.where}: {line.text!r}: {twice} twice; expected each version once")
    return dict.fromkeys(versions, value)


def _also_for(step: Step, words: Mapping[str, tuple[str, ...]]) -> Step:
    """Return the step with the versions whose words it names."""
    more = [each for each, names in words.items() if each not in step.variants and set(names) & set(step.variants)]
    return replace(step, variants=(*step.variants, *more)) if more else step
