"""Where no terminal is, a table is as wide as it must be, one line a row; on a terminal it fits it."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import TextIO

import pandas as pd
import pytest
from rich.table import Table

from harness.cli.check_output import _table
from harness.report.console import COLUMNS_UNBOUNDED, console, is_unbounded
from harness.report.summary_table import TITLES, render_summary
from harness.report.table import render_table
from harness.run.result import Status
from harness.run.store import SuiteDir
from harness.suite.recheck import CheckedSuite
from harness.suite.stored import StoredSuite
from tests.package import sources
from tests.report.samples import sample_result, suite_of

KIND, MUTANT = "oracle-follower-high-watermark", "kip320+truncate_to=high_watermark"
LONG = "20261128T172742-7-" + "long-name-" * 12


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of whoever runs the tests decides."""
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 80 columns, as rich takes one whose size is not known."""
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as file:
        yield file
    os.close(ours)


def table() -> Table:
    made = Table(title="checked again", title_justify="left")
    for name in ("suite", "runs", *(f"column {number} of many" for number in range(9))):
        made.add_column(name)
    made.add_row(LONG, "9", *map(str, range(9)))
    return made


def test_row_is_one_line_in_a_pipe_and_no_longer_than_its_words() -> None:
    out = StringIO()
    console(file=out).print(table())
    (row,) = (line for line in out.getvalue().splitlines() if LONG in line)
    assert [LONG, "9", *map(str, range(9))] == [cell.strip() for cell in row.split("│")[1:-1]]
    assert {len(row)} == {len(line) for line in out.getvalue().splitlines()}
    assert 400 > len(row)


def test_columns_that_the_user_sets_decide_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    assert (90, False) == (console(file=StringIO()).width, is_unbounded(console(file=StringIO())))


@pytest.mark.parametrize("value", ["", "wide"])
def test_columns_that_are_no_number_decide_nothing(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", value)
    assert COLUMNS_UNBOUNDED == console(file=StringIO()).width


def test_table_fits_a_terminal(terminal: TextIO) -> None:
    made = console(file=terminal)
    assert not is_unbounded(made)
    assert 300 > made.width


def test_colours_in_a_ci_log_are_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = StringIO()
    made = console(file=out)
    made.print("[red]x[/red]")
    assert "\x1b[" in out.getvalue()
    assert is_unbounded(made)


def test_no_color_is_respected(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert (True, True) == (console(file=terminal).no_color, console(file=StringIO()).no_color)


def test_every_command_takes_its_console_from_here() -> None:
    makers = [
        str(path)
        for path in sources.files()
        if path.suffix == ".py"
        and re.search(r"(?<![\w.])Console\(", (sources.ROOT / path).read_text(encoding="utf-8"))
    ]
    assert ["harness/report/console.py"] == makers


def test_verdict_table_has_a_line_for_each_scenario_and_each_mutant() -> None:
    cells = [
        sample_result("kip101-1", "hw", status=Status.MISMATCH),
        sample_result("kip101-1", "kip101"),
        sample_result("kip101-1", "kip320+fence_fetch=no"),
        sample_result("kip101-1", "kip320+truncate_to=high_watermark"),
    ]
    out = StringIO()
    render_table(suite_of(cells), console(file=out))
    rows = [line for line in out.getvalue().splitlines() if line.startswith("│")]
    assert 3 == len(rows)
    for row in rows:
        assert "kip101-1" in row
    assert "✗ mismatch: expected" in rows[0]
    assert "✓ as expected: expected" in rows[0]
    assert 400 > max(map(len, out.getvalue().splitlines())), "padded to the console's width"


def test_summary_has_every_column_in_a_pipe() -> None:
    frames = {name: pd.DataFrame() for name in TITLES}
    frames["nights"] = pd.DataFrame({"clock": []})
    frames["anomalies"] = pd.DataFrame(
        [
            {
                "kind": KIND,
                "verdict": "invalid",
                "family": MUTANT,
                "anomalies": 1,
                "runs": 2,
                "offsets": 3_000_000,
            }
        ]
    )
    out = StringIO()
    render_summary(frames, console(file=out))
    (row,) = (line for line in out.getvalue().splitlines() if "high_watermark" in line)
    assert [
        "oracle-follower-high-watermark",
        "invalid",
        "kip320+truncate_to=high_watermark",
        "1",
        "2",
        "3,000,000",
    ] == [*row.split()]
    assert "no room" not in out.getvalue()


def test_check_has_a_line_for_each_suite_in_a_pipe(tmp_path: Path) -> None:
    out = StringIO()
    suites = [
        CheckedSuite(stored=StoredSuite(folder=SuiteDir(path=tmp_path / name), suite=None, runs=()), runs=())
        for name in (LONG, f"{LONG}2")
    ]
    console(file=out).print(_table(suites))
    rows = [line.split("│")[1].strip() for line in out.getvalue().splitlines() if line.startswith("│")]
    assert [LONG, f"{LONG}2"] == rows
