"""The page of what the gauntlet found, from its journal: by what, at which seed, and which mutants survive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.tables import TOTALS, reasons, totals
from harness.docs import markdown


def found_page(mutants: Sequence[Mutant], found: Mapping[str, Found], intro: str) -> str:
    """Return the page, everything in the order of the mutants; no time is on it, as each gauntlet has its own."""
    ended = [found[mutant.name] for mutant in mutants]
    by_kinds: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for each in ended:
        if each.outcome is Outcome.FOUND:
            by_kinds[each.kinds].append(f"{each.name} {each.seed}")
    finders = sorted(by_kinds.items(), key=lambda item: -len(item[1]))
    parts = [
        intro,
        markdown.table(TOTALS, totals(mutants, found)),
        markdown.table(
            ("found by", "mutants", "which, and at which seed"),
            [(", ".join(f"`{kind}`" for kind in kinds), len(names), ", ".join(names)) for kinds, names in finders],
        ),
    ]
    others = [
        (mutant.name, each.outcome.value, reasons(mutant) or each.sentence)
        for mutant, each in zip(mutants, ended, strict=True)
        if each.outcome is not Outcome.FOUND
    ]
    if others:
        parts.append(markdown.table(("not found", "outcome", "why"), others))
    return "\n\n".join(("# What the gauntlet found", *parts)) + "\n"
