"""The verdict table in a terminal, with the reason and the command of every run that is not as expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.model import Verdict
from harness.report.console import is_unbounded
from harness.report.page import STATUS_SIGNS, headline
from harness.report.text import clean, plural
from harness.run.result import RunResult, Status
from harness.run.suite import Suite
from harness.scenario.variant import is_mutant

# Colours only repeat the words, so that nothing is lost under NO_COLOR or in a pipe.
_STYLES: Final = {
    Status.AS_EXPECTED: "green",
    Status.UNKNOWN: "yellow",
    Status.MISMATCH: "bold red",
}
# With fewer characters for each column, a list is easier to read than a table.
_COLUMN_CHARS_MIN: Final = 20
_NARROW_CHARS_MIN: Final = 11
# With more columns than this, a result that is as expected has one line, and titles are omitted.
_WIDE_COLUMNS_MAX: Final = 4


def render_table(suite: Suite, console: Console) -> None:
    """
    Print the table scenario x protocol with expected and found, the mutants, totals, and the runs to look at.

    Mutants have a separate table with one row each. If the console is too narrow for a table, it prints a list.
    Each command is printed on one line at any width, so that it can be copied.
    """
    columns = [protocol for protocol in suite.protocols if not is_mutant(protocol)]
    mutants = [result for result in suite.results if is_mutant(result.protocol)]
    brief = len(columns) > _WIDE_COLUMNS_MAX
    one_line = is_unbounded(console)
    wide_enough = console.width >= (_NARROW_CHARS_MIN if brief else _COLUMN_CHARS_MIN) * (len(columns) + 1)
    if columns and wide_enough:
        console.print(_table(suite, columns, brief=brief, one_line=one_line))
    if mutants and wide_enough:
        console.print(_mutants(mutants, one_line=one_line))
    if not wide_enough:
        _print_list(suite, console)
    console.print(totals(suite))
    for result in suite.results:
        if result.status is not Status.AS_EXPECTED:
            print_odd(result, console)


def _table(suite: Suite, columns: Sequence[str], *, brief: bool, one_line: bool) -> Table:
    title = Text(clean(suite.name))
    table = Table(title=title, title_justify="left", show_lines=not one_line, header_style="bold")
    table.add_column("scenario", ratio=2 if brief else 3, overflow="fold")
    for protocol in columns:
        table.add_column(Text(clean(protocol)), ratio=2, overflow="fold")
    titles = {result.scenario: result.title for result in suite.results}
    for scenario in suite.scenarios:
        name = Text(clean(scenario), "bold")
        if not brief and not one_line:
            name.append(f"\n{clean(titles.get(scenario, ''))}", "not bold")
        cells = [suite.result(scenario, protocol) for protocol in columns]
        whys = [suite.why_not(scenario, protocol) for protocol in columns]
        if any(cells) or any(whys):
            texts = map(partial(_cell_text, brief=brief, one_line=one_line), cells, whys)
            table.add_row(name, *texts)
    return table


def _mutants(cells: Sequence[RunResult], *, one_line: bool) -> Table:
    """Return a table with a row for each mutant, scenario by scenario."""
    table = Table(title=Text("mutants"), title_justify="left", header_style="bold")
    for column, ratio in (("scenario", 2), ("mutant", 3), ("found", 4)):
        table.add_column(column, ratio=ratio, overflow="fold")
    before = ""
    for result in cells:
        name = Text("" if result.scenario == before and not one_line else clean(result.scenario), "bold")
        table.add_row(name, Text(clean(result.protocol)), _cell_text(result, brief=True, one_line=one_line))
        before = result.scenario
    return table


def _cell_text(result: RunResult | None, why: str = "", *, brief: bool = False, one_line: bool = False) -> Text:
    if one_line and result is not None:
        words = f"{_status_text(result)}: expected {clean(result.expected)}, found {clean(result.found)}"
        return Text(words, _STYLES[result.status])
    if result is None:
        return Text(f"not played: {clean(why)}" if why else "" if brief else "not played", "dim")
    if brief and result.status is Status.AS_EXPECTED:
        # The expectation, not the findings: they may also have unpromised losses.
        return Text(f"{STATUS_SIGNS[result.status]} {clean(result.expected)}", _STYLES[result.status])
    text = Text(f"expected {clean(result.expected)}\nfound    ", "default")
    text.append(clean(result.found))
    text.append(f"\n{_status_text(result)}", _STYLES[result.status])
    return text


def _status_text(result: RunResult) -> str:
    return f"{STATUS_SIGNS[result.status]} {result.status.value}"


def _print_list(suite: Suite, console: Console) -> None:
    console.print(Text(clean(suite.name), "bold"))
    for result in suite.results:
        console.print(Text(f"{clean(result.scenario)} under {clean(result.protocol)}", "bold"))
        for part in _cell_text(result).split("\n"):
            console.print(Text("  ").append_text(part))
    for scenario, reasons in suite.unplayed.items():
        for protocol, why in reasons.items():
            console.print(Text(clean(f"{scenario} under {protocol} not played: {why}"), "dim"))


def totals(suite: Suite) -> Text:
    """Return the number of results by status, the worst verdict and the duration, as text."""
    counts = Counter(result.status for result in suite.results)
    worst = Verdict.merge(result.verdict for result in suite.results)
    parts = ", ".join(f"{counts[status]} {status.value}" for status in Status)
    style = _STYLES[_worst(counts)]
    return Text(
        f"{headline(suite)}\n{plural(len(suite.results), 'run')}: {parts}; "
        f"worst verdict {worst.name.lower()}; {suite.seconds:.1f} s",
        style,
    )


def _worst(counts: Counter[Status]) -> Status:
    order = (Status.MISMATCH, Status.UNKNOWN)
    return next((status for status in order if counts[status]), Status.AS_EXPECTED)


def print_odd(result: RunResult, console: Console) -> None:
    """Print why a result is not as expected, and the command that plays the run again."""
    title = f"\n{_status_text(result)}: {clean(result.scenario)} under {clean(result.protocol)}"
    console.print(Text(title, _STYLES[result.status]))
    for words in (f"expected {result.expected}, found {result.found}", f"why:   {result.reason}"):
        console.print(Padding(Text(clean(words)), (0, 0, 0, 2), expand=False))
    console.print(Text(f"  again: {clean(result.rerun)}"), soft_wrap=True)
