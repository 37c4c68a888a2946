"""The page of what the gauntlet found, from its journal: by what, at which seed, and which mutants survive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.search import Gauntlet
from benchmarks.mutants.tables import TOTALS, reasons, totals
from harness.docs import markdown


def found_page(mutants: Sequence[Mutant], found: Mapping[str, Found], gauntlet: Gauntlet) -> str:
    """Return the page, everything in the order of the mutants; no time is on it, as each gauntlet has its own."""
    ended = [found[mutant.name] for mutant in mutants]
    by_kinds: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for each in ended:
        if each.outcome is Outcome.FOUND:
            by_kinds[each.kinds].append(f"{each.name} {each.seed}")
    finders = sorted(by_kinds.items(), key=lambda item: -len(item[1]))
    parts = [
        "# What the gauntlet found",
        "\n".join(_how(gauntlet)),
        markdown.table(TOTALS, totals(mutants, found)),
        markdown.table(
            ("found by", "mutants", "which, and at which seed"),
            [(", ".join(f"`{kind}`" for kind in kinds), len(names), ", ".join(names)) for kinds, names in finders],
        ),
    ]
    others = [
        (each.name, each.outcome.value, each.played, reasons(mutant) or each.sentence)
        for mutant, each in zip(mutants, ended, strict=True)
        if each.outcome is not Outcome.FOUND
    ]
    if others:
        parts.append(markdown.table(("not found", "outcome", "seeds played", "why"), others))
    return "\n\n".join(parts) + "\n"


def _how(gauntlet: Gauntlet) -> Iterator[str]:
    """Yield in sentences what was played."""
    seeds = gauntlet.seeds
    span = f"seeds {seeds.start} to {seeds.stop - 1} of `kip380`"
    yield f"Each mutant was searched in {span}, up to the first finding."
    if gauntlet.hints:
        yield "The seed that showed it before was tried first, then the others in order."
    if gauntlet.survey is not None:
        yield (
            "A seed in which the core as it is runs nothing that the mutant changes was not played, as the "
            "mutant's run is the same."
        )
        own = gauntlet.survey.own_findings(seeds)
        yield (
            f"The core as it is had findings in seeds {', '.join(map(str, own))}, which were played for no mutant."
            if own
            else "The core as it is had no finding in any of them."
        )
    if gauntlet.scenarios:
        yield "All scenarios were played too."
