"""Print docs/rules.md, from the broker's Rules and the scenarios' expectations for mutants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final, get_type_hints

from harness.docs import markdown
from harness.scenario.variant import Variant, is_mutant
from harness.suite.scenario_files import read_scenario
from targets.broker.core.rules import PROTOCOLS, Rules, as_text, values_of
from workloads import SCENARIOS

NONE: Final = "none"


def rules() -> str:
    """Return docs/rules.md, from the fields of the broker's Rules."""
    kinds = get_type_hints(Rules)
    written = {name: as_text(protocol) for name, protocol in PROTOCOLS.items()}
    rows = [(f"[`{name}`](#{name})", *(f"`{each[name]}`" for each in written.values())) for name in kinds]
    parts = [
        "A protocol is a named set of rules.\n"
        "`--rule NAME=VALUE` (in make: `RULES=NAME=VALUE`) changes one of them.",
        markdown.table(("rule", *PROTOCOLS), rows),
        *_shown(),
    ]
    for field in fields(Rules):
        about = field.metadata
        values = [(f"`{value}`", about["values"][value]) for value in values_of(kinds[field.name])]
        parts += [
            f"## {field.name}",
            f"{about['doc']}\nSource: {about['source']}.",
            markdown.table(("value", "means"), values),
        ]
    return markdown.page("Rules", "targets/broker/core/rules.py and workloads/scenarios", *parts)


def _shown() -> Iterator[str]:
    """Yield the section that shows the effect of each rule: one line for each mutant of each scenario."""
    rows = sorted(
        (f"[`{change.partition('=')[0]}`](#{change.partition('=')[0]})", f"`{change}`", *rest)
        for change, *rest in _mutants()
    )
    quiet = [f"`{name}`" for name in get_type_hints(Rules) if not any(f"`{name}`]" in row[0] for row in rows)]
    yield "## What shows each rule"
    yield (
        "`make scenarios` plays each line: the scenario has one outcome under the protocol, and another if only "
        "that rule is changed.\n"
        f"No scenario shows the effect of {', '.join(quiet)}; the core's own tests do."
    )
    yield markdown.table(("rule", "changed to", "scenario", "under", "as it is", "changed"), rows)


def _mutants() -> Iterator[tuple[str, str, str, str, str]]:
    for path in sorted(SCENARIOS.glob("*.txt")):
        scenario = read_scenario(path)
        for text, changed in scenario.expectations.items():
            if not is_mutant(text):
                continue
            mutant = Variant.parse(text, str(path))
            as_it_is = scenario.expectations.get(mutant.protocol, NONE)
            if as_it_is != changed:
                yield ", ".join(mutant.changes), f"`{scenario.name}`", f"`{mutant.protocol}`", as_it_is, changed
