"""Prints a shrunk schedule as a scenario file, with what is expected of it under each protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from checkers.judge import compare
from checkers.verdict import records_of
from harness.model import Kind, Op, PartOps, UsageError
from harness.run.result import RunResult, Status
from harness.scenario.file import Scenario, parse
from harness.scenario.text import text_of
from harness.scenario.variant import Variant
from harness.search.random_runs import is_written
from harness.search.shrink.steady import RUNS
from harness.search.shrink.subject import Subject
from harness.suite.scenario_files import known_faults
from harness.target.found import target
from harness.target.settings import Settings
from targets import DEFAULT_TARGET

_SETTINGS: Final = "settings "


def scenario_text(scenario: Scenario, subject: Subject, again: str, steady: int | None = None) -> str:
    """
    Return the file of a scenario: without default settings, with the outcome under each protocol.

    An outcome is left out if the run under that protocol is unknown, as when a step of it is not applicable, or if
    no expectation can say it.

    Args:
        scenario: it shows a violation under the subject's variant.
        subject: the system that it is played on.
        again: the command that plays the file.
        steady: in how many slowed runs it ends the same; None if that is not known.
    """
    about = "" if is_written(scenario) else f", in the random world of seed {subject.seed}"
    lines = [
        *_without_defaults(scenario),
        f"# Shrunk by `fencepost shrink`{about}. It is played again by",
        f"# {again}",
        *([] if steady is None else [_steadiness(steady)]),
    ]
    for outcome, names in _outcomes(scenario, subject).items():
        expectation = f"expect {', '.join(names)}: {outcome}"
        # What an expectation cannot say: of a random run the loss of a record that it sends at its end.
        lines.append(expectation if _reads([*lines, expectation]) else f"# {expectation}")
    return "\n".join(lines) + "\n"


def _steadiness(steady: int) -> str:
    claim = "It ends so however late its steps come" if steady == RUNS else "It depends on how soon its steps come"
    return f"# {claim}: in {steady} of {RUNS} runs with passes between them."


def _without_defaults(scenario: Scenario) -> Iterator[str]:
    """Yield the lines of a scenario's text, without the settings that have their defaults."""
    plain = text_of(replace(scenario, settings=Settings())).splitlines()
    defaults = {word for line in plain if line.startswith(_SETTINGS) for word in line.split()[1:]}
    for line in text_of(scenario).splitlines():
        if not line.startswith(_SETTINGS):
            yield line
        elif chosen := [word for word in line.split()[1:] if word not in defaults]:
            yield " ".join(["settings", *chosen])
    yield ""


def _outcomes(scenario: Scenario, subject: Subject) -> Mapping[str, Sequence[str]]:
    """Return outcome -> the variants that have it: first that of the subject, then in the order of protocols."""
    found: dict[str, list[str]] = {}
    ladder = [Variant(protocol=name) for name in target(DEFAULT_TARGET).protocols()]
    for variant in dict.fromkeys((subject.variant, *ladder)):
        result, ops = subject.run(scenario, variant)
        expectation = _expectation(result)
        if variant == subject.variant or _says_all(expectation, result, ops):
            found.setdefault(expectation, []).append(str(variant))
    return found


def _says_all(expectation: str, result: RunResult, ops: Sequence[Op]) -> bool:
    """
    Return True if an expectation says all that was found.

    None names a record of a `settle`, nor tells two anomalies apart that are alike in all that it names.
    """
    try:
        status, _ = compare(expectation, result.anomalies, records_of(PartOps(ops)))
    except UsageError:
        return False
    return status is Status.AS_EXPECTED


def _expectation(result: RunResult) -> str:
    """Return what was found, without what nobody expects: records that were never promised."""
    terms = [term for term in result.found.split(", ") if term.split()[0] != Kind.UNPROMISED.value]
    return ", ".join(terms) or "none"


def _reads(lines: Sequence[str]) -> bool:
    try:
        parse("shrunk", "\n".join(lines), "shrunk", known_faults())
    except UsageError:
        return False
    return True
