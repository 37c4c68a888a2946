"""docs/mutants.md: every mutant and the rule that it breaks, without what a search found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.mutants import MUTANTS, WITHOUT
from benchmarks.mutants.mutant import CATEGORIES, CORE, Mutant
from benchmarks.mutants.wire import MUTANTS_OF_THE_CODEC, WIRE
from harness.docs import markdown

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"


def page() -> str:
    """Return docs/mutants.md, from the tables of mutants."""
    mutants = list(MUTANTS.values())
    of_class = Counter(mutant.category for mutant in mutants)
    parts = [
        f"Each mutant is one bug of one to three lines in a module of `{CORE}`.\n"
        "It is no rule of [rules.md](rules.md) put back: it is a bug that a release had, or that is written in "
        "haste.\n"
        "`make bench-mutants` searches them, goes on where it was ended, and says what found each: "
        "[search.md](search.md#the-gauntlet).\n"
        "An *equivalent* bug no test and no search can tell from the broker as it is. An *unreachable* one only a "
        "test of the core alone can: no cluster of `kip380` gets to where it differs.",
        markdown.table(
            ("class", "is about", "mutants"),
            [(f"`{each}`", about, of_class[each]) for each, about in CATEGORIES.items()],
        ),
    ]
    for module in sorted({mutant.module for mutant in mutants}):
        rows = [
            (f"`{each.name}`", f"`{each.category}`", f"{each.sentence}{_why_it_survives(each)}", each.breaks)
            for each in mutants
            if each.module == module
        ]
        parts += [f"## {module}", markdown.table(("mutant", "class", "the broken broker", "breaks"), rows)]
    of_codec = [(f"`{each.name}`", each.sentence, each.breaks) for each in MUTANTS_OF_THE_CODEC.values()]
    parts += [
        "## Of the codec",
        f"These are bugs in `{WIRE}`, which no simulated run has: real brokers on `local` have them, and what "
        "clients, links and log readers see of them must be found (`tests/benchmarks/test_codec_mutants.py`).",
        markdown.table(("mutant", "the broken broker", "breaks"), of_codec),
        "## Modules without mutants",
        markdown.table(("module", "why"), [(f"`{name}`", why) for name, why in WITHOUT.items()]),
    ]
    return markdown.page("Mutants", "benchmarks/mutants", *parts)


def write_page() -> None:
    """Write docs/mutants.md."""
    PAGE.write_text(page(), encoding="utf-8")


def _why_it_survives(mutant: Mutant) -> str:
    reasons = {"Equivalent": mutant.equivalent, "Unreachable": mutant.unreachable}
    return "".join(f" *{name}:* {reason}." for name, reason in reasons.items() if reason)
