"""The tables of the gauntlet: mutant by mutant, totals of each class, and what survived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.mutant import Category, Mutant

TOTALS: Final = ("class", "found", "all", "equivalent or unreachable", "crashed or too long")


def line(found: Found) -> str:
    """Return what became of a mutant in one line."""
    at = "" if found.seed is None else f" at {found.seed}"
    by = f": {' '.join(found.kinds) or found.sentence}" if found.outcome is not Outcome.SURVIVED else ""
    red = f"; red: {' '.join(found.scenarios)}" if found.scenarios else ""
    return f"{found.name} {found.outcome}{at}{by}{red}"


def totals(mutants: Sequence[Mutant], found: Mapping[str, Found]) -> list[tuple[str, int, int, int, int]]:
    """Return class, found, all, equivalent or unreachable, and crashed or too long; the last row is of all."""
    rows: list[tuple[str, int, int, int, int]] = []
    for name, members in (*((each.value, [each]) for each in Category), ("all", list(Category))):
        mine = [mutant for mutant in mutants if mutant.category in members]
        ended = [found[mutant.name].outcome for mutant in mine if mutant.name in found]
        rows.append(
            (
                name,
                ended.count(Outcome.FOUND),
                len(mine),
                sum(bool(mutant.equivalent or mutant.unreachable) for mutant in mine),
                ended.count(Outcome.CRASHED) + ended.count(Outcome.TOO_LONG),
            )
        )
    return rows


def print_tables(mutants: Sequence[Mutant], found: Mapping[str, Found], console: Console) -> None:
    """Print all three, in the order of the mutants."""
    each = Table(title="mutants", title_justify="left")
    for name in ("mutant", "module", "class", "outcome", "seed", "found by", "red scenarios"):
        each.add_column(
            name,
            justify="right" if name in ("seed", "red scenarios") else "left",
            no_wrap=name in ("mutant", "outcome"),
            overflow="fold",
        )
    for mutant in mutants:
        its = found[mutant.name]
        seed = "" if its.seed is None else str(its.seed)
        each.add_row(
            mutant.name,
            mutant.module,
            mutant.category.value,
            its.outcome.value,
            seed,
            " ".join(its.kinds),
            str(len(its.scenarios) or ""),
        )
    console.print(each)
    table = Table(title="totals", title_justify="left")
    for name in TOTALS:
        table.add_column(name, justify="left" if name == "class" else "right")
    for row in totals(mutants, found):
        table.add_row(*map(str, row))
    console.print(table)
    for mutant in mutants:
        if found[mutant.name].outcome is Outcome.SURVIVED:
            why = reasons(mutant)
            text = f"survived: {mutant.name}: {mutant.sentence}{f' ({why})' if why else ''}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)


def reasons(mutant: Mutant) -> str:
    """Return why a mutant need not be found, "" if it must."""
    why = {"equivalent": mutant.equivalent, "unreachable": mutant.unreachable}
    return "; ".join(f"{name}: {reason}" for name, reason in why.items() if reason)
