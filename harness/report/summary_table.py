"""
The tables of a summary as text, for a terminal and for the page: which columns, in which order, in which units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final, TypeAlias

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.text import clean, plural, took

Row: TypeAlias = Mapping[str, Any]

OUTCOMES: Final = ("valid", "permitted", "unknown", "hang", "invalid", "unreadable")
# The title of each table, and of its first column.
TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "nights": ("by night", "night"),
    "protocols": ("by protocol", "protocol"),
    "releases": ("by release", "release"),
    "workloads": ("by workload", "workload"),
    "anomalies": ("anomalies", "kind"),
    "faults": ("faults", "fault"),
    "unreadable": ("unreadable", "night"),
}
# Rows of a table in a terminal; the page has all.
_ROWS_MAX: Final = 25
_BETWEEN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """
    A column of a table.

    Attributes:
        text: of one row.
        weight: columns with the least are the first to be left out where a table is too wide.
        number: whether it is aligned to the right.
        idle: the text that every row has in a column that is left out, None for a column that is always there.
    """

    head: str
    text: Callable[[Row], str]
    weight: int
    number: bool = True
    idle: str | None = None


def columns_of(name: str, clocks: int = 2) -> list[Column]:
    """Return the columns of a table; with one clock alone, none says which."""
    if name == "anomalies":
        return [
            _word("kind", 9),
            _word("verdict", 5),
            _word("protocol", 8, "family"),
            _count("anomalies", 9),
            _count("runs", 7),
            _count("offsets", 6),
        ]
    if name == "faults":
        return [_word("fault", 9, "kind"), _count("asked", 8), _count("bit", 9), _count("runs", 6)]
    if name == "unreadable":
        return [_word("night", 5), _word("suite", 8), _word("run", 7), _word("reason", 9)]
    clock = [_word("clock", 8)] if clocks > 1 else []
    verdicts = [_count(outcome, 6 if outcome in ("valid", "permitted") else 8, idle="0") for outcome in OUTCOMES]
    return [_word(TITLES[name][1], 10, "value"), *clock, _count("runs", 9), *verdicts, *_MEASURED]


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, with None where there is nothing."""
    return [{str(k): None if _is_null(v) else v for k, v in row.items()} for row in frame.to_dict("records")]


def kept(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that say something."""
    return [each for each in columns if each.idle is None or any(each.text(row) != each.idle for row in rows)]


def render_summary(frames: Mapping[str, pd.DataFrame], console: Console) -> None:
    """Print the tables; one that is wider than the console lacks columns, and says which."""
    clocks = frames["nights"]["clock"].nunique()
    for name, (title, _) in TITLES.items():
        rows = records_of(frames[name])
        if not rows:
            continue
        columns = kept(columns_of(name, clocks), rows)
        fitting = _fitting(columns, rows, console.width)
        table = Table(
            title=Text(title, "bold"), title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1)
        )
        for column in fitting:
            table.add_column(column.head, justify="right" if column.number else "left", overflow="fold")
        for row in rows[:_ROWS_MAX]:
            table.add_row(*(Text(clean(column.text(row))) for column in fitting))
        console.print(table)
        notes = [f"{plural(len(rows) - _ROWS_MAX, 'more row')}"] if len(rows) > _ROWS_MAX else []
        out = [column.head for column in columns if column not in fitting]
        notes += [f"no room for {', '.join(out)}"] if out else []
        if notes:
            console.print(Text(f"  {'; '.join(notes)}: see the page, or --csv {name}", "dim"))


def _fitting(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Column]:
    """Return the columns for which there is room, the weightiest first; never none."""
    left = width - 1
    chosen: list[Column] = []
    for column in sorted(columns, key=lambda column: -column.weight):
        texts = [column.head, *(column.text(row) for row in rows[:_ROWS_MAX])]
        needs = max(map(len, texts)) + _BETWEEN
        # Words can be folded, numbers cannot.
        needs = needs if column.number else min(needs, max(12, width // 3))
        if needs <= left or not chosen:
            chosen.append(column)
            left -= needs
    return [column for column in columns if column in chosen]


def _word(head: str, weight: int, key: str = "") -> Column:
    return Column(head=head, text=lambda row: str(row[key or head] or ""), weight=weight, number=False)


def _count(head: str, weight: int, key: str = "", idle: str | None = None) -> Column:
    return Column(head=head, text=lambda row: f"{int(row[key or head] or 0):,}", weight=weight, idle=idle)


def _time(name: str, weight: int) -> Column:
    return Column(head=name, text=lambda row: _took(row[f"{name}_ms"]), weight=weight)


def _took(ms: float | None) -> str:
    return "" if ms is None else took(round(ms * 1e6))


def share_of(row: Row) -> str:
    """Return the share of windows that were available, "" if nothing was tried."""
    if not row["windows"]:
        return ""
    # Rounded down: what was not always available is never 100 %.
    return f"{int(row['available_windows']) * 1000 // int(row['windows']) / 10:.1f} %"


def _longest(row: Row) -> str:
    return f"{row['unavailable_s']:g} s" if row["unavailable_s"] else ""


def _is_null(value: Any) -> bool:
    return value is None or value is pd.NaT or (isinstance(value, float) and isnan(value))


_MEASURED: Final = (
    Column(
        head="unexpected",
        text=lambda row: f"{int(row['status_mismatch'] + row['status_unknown']):,}",
        weight=9,
        idle="0",
    ),
    _count("anomalies", 5),
    _count("faults", 4, "asked"),
    _count("bit", 6),
    _time("p50", 6),
    _time("p90", 3),
    _time("p99", 7),
    _time("max", 3),
    _count("failed", 2, "fail", idle="0"),
    _count("unanswered", 2, "info", idle="0"),
    _count("never ended", 1, "open", idle="0"),
    Column(head="available", text=share_of, weight=7),
    Column(head="longest gap", text=_longest, weight=4, idle=""),
)
