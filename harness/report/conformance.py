"""
One table in a terminal: every scenario on releases of another system, and on our broker under the same protocols.

    ✓  both as expected, with the same expectation
    ≠  both as expected, with another expectation for the release: a known difference
    ✗  one of them is not as expected
    ?  one of them is unknown
    –  not played, with the reason
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.console import is_unbounded
from harness.report.table import print_odd, totals
from harness.report.text import clean
from harness.run.result import RunResult, Status
from harness.run.suite import Suite


class Standing(StrEnum):
    """How a release compares with our broker in one scenario; the value is its sign."""

    ALIKE = "✓"
    DIFFERS = "≠"
    WRONG = "✗"
    UNKNOWN = "?"
    NOT_PLAYED = "–"


# On a narrower console, a list is easier to read than a table.
_TABLE_CHARS_MIN: Final = 76
_STYLES: Final = {
    Standing.ALIKE: "green",
    Standing.DIFFERS: "cyan",
    Standing.WRONG: "bold red",
    Standing.UNKNOWN: "yellow",
    Standing.NOT_PLAYED: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """
    One scenario on one release, and on our broker under the protocol to which the release corresponds.

    Attributes:
        models: that protocol.
        theirs: the result on the release, None if it was not played.
        ours: the result on our broker, None if the scenario expects nothing of it.
        why: the reason why it was not played.
    """

    scenario: str
    release: str
    models: str
    theirs: RunResult | None
    ours: RunResult | None
    why: str = ""

    @property
    def standing(self) -> Standing:
        """How the two results compare."""
        if self.theirs is None:
            return Standing.NOT_PLAYED
        statuses = {result.status for result in (self.theirs, self.ours) if result is not None}
        if Status.MISMATCH in statuses:
            return Standing.WRONG
        if Status.UNKNOWN in statuses:
            return Standing.UNKNOWN
        alike = self.ours is None or self.ours.expected == self.theirs.expected
        return Standing.ALIKE if alike else Standing.DIFFERS

    @property
    def words(self) -> tuple[str, str, str]:
        """The cells of the table: expected of the release, found on the release, found on our broker."""
        if self.theirs is None:
            return "", self.why, ""
        expected = self.theirs.expected
        ours = "nothing is expected" if self.ours is None else _found(self.ours, expected)
        return expected, _found(self.theirs, expected), ours


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of the table, for all releases with the same cells and standing."""

    words: tuple[str, ...]
    standing: Standing


def render_conformance(suite: Suite, pairs: Sequence[Pair], console: Console) -> None:
    """Print the table, totals, and for every run that is not as expected the reason and the command."""
    scenarios = {name: _rows(list(alike)) for name, alike in groupby(pairs, key=lambda pair: pair.scenario)}
    console.print(Text(clean(suite.name), "bold"))
    if console.width >= _TABLE_CHARS_MIN:
        console.print(_table(scenarios, one_line=is_unbounded(console)))
    else:
        _print_list(scenarios, console)
    console.print(Text("  ".join(f"{each.value} {_MEANING[each]}" for each in Standing), "dim"))
    console.print(totals(suite))
    for result in suite.results:
        if result.status is not Status.AS_EXPECTED:
            print_odd(result, console)


_MEANING: Final[Mapping[Standing, str]] = {
    Standing.ALIKE: "same",
    Standing.DIFFERS: "differs, as expected",
    Standing.WRONG: "not as expected",
    Standing.UNKNOWN: "unknown",
    Standing.NOT_PLAYED: "not played",
}


def _table(scenarios: Mapping[str, Sequence[_Row]], *, one_line: bool) -> Table:
    table = Table(header_style="bold")
    for number, column in enumerate(("scenario", "releases", "as ours", "expected", "theirs", "ours")):
        table.add_column(column, ratio=4 if number == 2 else 6, overflow="fold")
    table.add_column("", width=1)
    for scenario, rows in scenarios.items():
        for number, row in enumerate(rows):
            name = Text(clean(scenario) if number == 0 or one_line else "", "bold")
            table.add_row(name, *map(Text, row.words), Text(row.standing.value, _STYLES[row.standing]))
        table.add_section()
    return table


def _print_list(scenarios: Mapping[str, Sequence[_Row]], console: Console) -> None:
    for scenario, rows in scenarios.items():
        for row in rows:
            releases, models, expected, theirs, ours = row.words
            console.print(Text(f"{row.standing.value} {clean(scenario)} on {releases}", _STYLES[row.standing]))
            console.print(Text(f"  as {models}: expected {expected}; theirs {theirs}; ours {ours}"))


def _rows(pairs: Sequence[Pair]) -> list[_Row]:
    """Join the releases with the same cells and standing into one row."""
    alike: dict[tuple[tuple[str, ...], Standing], list[Pair]] = {}
    for pair in pairs:
        alike.setdefault((pair.words, pair.standing), []).append(pair)
    return [
        _Row(
            words=(
                " ".join(clean(pair.release) for pair in group),
                " ".join(dict.fromkeys(clean(pair.models) for pair in group)),
                *map(clean, words),
            ),
            standing=standing,
        )
        for (words, standing), group in alike.items()
    ]


def _found(result: RunResult, expected: str) -> str:
    if result.status is Status.AS_EXPECTED:
        return "as expected" if result.expected == expected else f"{result.expected}, as expected of it"
    return f"{result.found}: {result.status.value}"
