"""Print docs/scenarios.md, from the scenario files and the docstrings of the steps' classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final

from harness import limits
from harness.docs import markdown, word_table
from harness.scenario import condition_types as condition_kinds
from harness.scenario import file as schedule
from harness.scenario import runner
from harness.scenario import steps as step_kinds
from harness.scenario.condition_types import CONDITIONS
from harness.scenario.file import Scenario
from harness.scenario.grammar import Statement, shape_of
from harness.scenario.steps import LINK_STEPS, STEPS, Produce
from harness.suite.scenario_files import read_scenario
from harness.target.settings import Settings
from workloads import SCENARIOS

_WORDS: Final[tuple[tuple[str, tuple[type[Statement], ...]], ...]] = (
    ("The words of a scenario", tuple(kind for kind in STEPS if kind not in (Produce, *LINK_STEPS))),
    ("What it produces", (Produce,)),
    ("What it does to links", LINK_STEPS),
    ("What it awaits and requires", CONDITIONS),
)
# The text below the words of a section.
_NOTES: Final[Mapping[str, str]] = {
    "The words of a scenario": markdown.docstring(runner).split("\n\n", 1)[1],
    "What it does to links": markdown.docstring(step_kinds).split("\n\n", 1)[1],
    "What it awaits and requires": markdown.docstring(condition_kinds).split("\n\n", 1)[1],
}
_LIMITS_TEXT: Final = (
    "A file is UTF-8 text, with or without a byte order mark and carriage returns, and has no other character "
    "that is not visible.\nWhat is wrong in it is an error with file and line before anything is started, exit "
    "code 2; so is what would weaken it in silence:\na second `title` or `nodes`, a setting, an expectation or a "
    "group of records twice, a name that nothing has, an expectation of records that no step has acknowledged."
)
# A form with this many characters or more has its own line.
_FORM_CHARACTERS_MAX: Final = 46


def scenarios() -> str:
    """Return docs/scenarios.md, from the scenario files."""
    read = [read_scenario(path) for path in sorted(SCENARIOS.glob("*.txt"))]
    parts = [
        "Each scenario is a text file in `workloads/scenarios`. It is played under every protocol and mutant that "
        "it has an expectation for.\n`fencepost scenarios` lists them, `make scenarios` plays them.\n"
        "[protocol.md](protocol.md#the-scenarios) explains each outcome.",
        markdown.table(
            ("scenario", "title", "source"),
            [(f"[{s.name}](#{s.name.replace('.', '')})", s.title, s.sources[0]) for s in read],
        ),
    ]
    for scenario in read:
        parts += _scenario(scenario)
    for title, kinds in _WORDS:
        parts += [f"## {title}", markdown.code("\n".join(line for kind in kinds for line in _words(kind)))]
        parts += [_NOTES[title]] if title in _NOTES else []
    parts += ["## Words by target", *word_table.words()]
    parts += ["## What its file says", markdown.code(markdown.docstring(schedule).split("\n\n", 1)[1])]
    parts += ["## Limits of its file", _LIMITS_TEXT, markdown.table(("of", "at most"), _limits())]
    return markdown.page("Scenarios", "workloads/scenarios", *parts)


def _limits() -> list[tuple[str, str]]:
    """Return the rows of the limits, with the units of harness/limits.py."""
    return [
        ("the file", f"{limits.SCENARIO_BYTES_MAX:,} bytes, {limits.SCENARIO_LINES_MAX:,} lines"),
        ("a line", f"{limits.SCENARIO_LINE_CHARACTERS_MAX:,} characters"),
        ("nodes", f"{limits.SCENARIO_NODES_MAX}"),
        ("groups of records", f"{limits.SCENARIO_GROUPS_MAX:,}"),
        ("records of all groups, at their largest", f"{limits.SCENARIO_RECORDS_MAX:,}"),
        ("an offset", f"{limits.SCENARIO_OFFSET_MAX:,}"),
        ("a time in a step or a setting", f"{limits.SCENARIO_TIME_S_MAX:,} s"),
        ("`min_isr`", "the number of replicas"),
    ]


def _words(kind: type[Statement]) -> Iterator[str]:
    """Yield the lines of a form: its meaning is beside it, or below it if the form is long."""
    form, meaning = shape_of(kind), markdown.docstring(kind).split("\n")
    if len(form) < _FORM_CHARACTERS_MAX:
        yield f"{form:{_FORM_CHARACTERS_MAX}}{meaning[0]}".rstrip()
        meaning = meaning[1:]
    else:
        yield form
    yield from (f"{'':{_FORM_CHARACTERS_MAX}}{line}".rstrip() for line in meaning if line)


def _scenario(scenario: Scenario) -> Iterator[str]:
    yield f"## {scenario.name}"
    counts = ", ".join(
        f"{c.name} {c.base + '+' if c.base else ''}{_range(c.low, c.high)}" for c in scenario.records
    )
    replicas = f"{', '.join(scenario.replicas[:-1])} and {scenario.replicas[-1]}"
    yield "\n".join(
        (
            f"**{scenario.title}.**",
            *(f"Source: {source}." for source in scenario.sources),
            f"Replicas {replicas}, {scenario.replicas[0]} leads first; {scenario.nodes[0]} is controller.",
            f"Records: {counts}.",
            *_settings(scenario.settings),
        )
    )
    if scenario.further:
        heads = [f"partition {place} {' '.join(replicas)}" for place, replicas in scenario.further.items()]
        yield "Further partitions, each with its replicas, the first of which leads:"
        yield markdown.code("\n".join(heads))
    by_outcome: dict[str, list[str]] = {}
    for variant, outcome in scenario.expectations.items():
        by_outcome.setdefault(outcome, []).append(f"`{variant}`")
    yield markdown.table(("expected", "of"), [(f"`{text}`", ", ".join(of)) for text, of in by_outcome.items()])
    steps: list[str] = []
    for step in scenario.steps:
        if step.narrative and steps:
            yield markdown.code("\n".join(steps))
            steps = []
        if step.narrative:
            yield step.narrative
        steps.append(step.text)
    yield markdown.code("\n".join(steps))


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _settings(settings: Settings) -> Iterator[str]:
    """Yield the settings that differ from the defaults."""
    usual = Settings()
    changed = [f.name for f in fields(Settings) if getattr(settings, f.name) != getattr(usual, f.name)]
    if changed:
        yield f"Settings: {', '.join(f'`{name}={getattr(settings, name)}`' for name in changed)}."
