"""The table in the terminal says everything in words, at any width and with or without colours."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from harness.report import render_table
from harness.run.result import Status
from harness.run.suite import Suite
from tests.report.samples import sample, suite_of


def _printed(suite: Suite, width: int, **more: object) -> str:
    console = Console(width=width, record=True, **more)  # type: ignore[arg-type]
    with console.capture() as capture:
        render_table(suite, console)
    return capture.get()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_table_says_expected_found_and_status_of_every_cell_at_any_width(width: int) -> None:
    suite, _ = sample()
    text = " ".join(_printed(suite, width).split())
    assert "expected lost m2" in text
    assert text.count("✓ as expected") == 4
    assert "5 runs: 4 as expected, 1 unknown, 0 mismatch" in text


@pytest.mark.parametrize("width", [40, 200])
def test_table_prints_command_of_an_odd_cell_on_one_line(width: int) -> None:
    suite, _ = sample()
    odd = next(c for c in suite.results if c.status is not Status.AS_EXPECTED)
    lines = _printed(suite, width).splitlines()
    assert [f"again: {odd.rerun}"] == [line.strip() for line in lines if "again:" in line]


def test_table_names_reason_of_an_odd_cell() -> None:
    suite, _ = sample()
    odd = next(c for c in suite.results if c.status is not Status.AS_EXPECTED)
    assert odd.reason in " ".join(_printed(suite, 80).split())


def test_table_prints_no_command_when_all_is_as_expected() -> None:
    suite, _ = sample()
    fine = suite_of([c for c in suite.results if c.status is Status.AS_EXPECTED])
    text = _printed(fine, 120)
    assert "again:" not in text
    assert "All 4 runs came out exactly as expected." in text


def test_table_has_colours_on_a_terminal_and_none_under_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    suite, _ = sample()
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = _printed(suite, 120, force_terminal=True, color_system="standard")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = _printed(suite, 120, force_terminal=True, color_system="standard")
    assert "\x1b[32m" in coloured
    assert "\x1b[32m" not in plain and "[1;31m" not in plain


def test_table_shows_markup_and_control_characters_as_they_are() -> None:
    suite, _ = sample()
    cell = replace(suite.results[0], found="[bold]x[/bold]\x1b[31m", status=Status.MISMATCH, reason="[/nothing]")
    text = _printed(suite_of([cell]), 100)
    assert "[bold]x[/bold]␛[31m" in text
    assert "[/nothing]" in text


def ladder(*mutants: str) -> Suite:
    """Return one scenario under seven protocols, one of them not as expected, and under the mutants."""
    first = next(c for c in sample()[0].results if c.status is Status.AS_EXPECTED)
    protocols = ("hw", "kip101", "kip101-text", "kip279", "kip279-2.0.1", "kip320", "kip380", *mutants)
    odd = {"status": Status.MISMATCH, "found": "hang", "reason": "unexpected: hang"}
    return suite_of(
        [replace(first, protocol=protocol, **(odd if protocol == "kip320" else {})) for protocol in protocols]
    )


def test_table_of_many_protocols_fits_a_terminal_and_is_brief_where_all_is_as_expected() -> None:
    suite = ladder()
    text = _printed(suite, 118)
    assert "┏" in text
    table = text[: text.index("7 runs")]
    assert 1 == table.count("expected")
    assert 6 == table.count("✓ lost m2")
    assert all(len(line) <= 118 for line in text.splitlines() if "again:" not in line)


def test_mutants_have_rows_of_their_own() -> None:
    mutants = ("kip320+fence_fetch=no", "kip320+fence_isr_join=no")
    text = _printed(ladder(*mutants), 118)
    before, _, after = text.partition("mutants")
    assert "fence_fetch" not in before
    for mutant in mutants:
        row = next(line for line in after.splitlines() if mutant in line)
        assert [mutant, "✓ lost m2"] == [part.strip() for part in row.split("│")[2:4]]


def test_mutants_alone_need_no_table_of_protocols() -> None:
    suite = ladder("kip320+fence_fetch=no")
    alone = suite_of([cell for cell in suite.results if "+" in cell.protocol])
    text = _printed(alone, 118)
    assert ("mutants" in text, 1) == (True, text.count("┏"))


@pytest.mark.parametrize("width", [40, 200])
def test_cell_that_was_not_played_says_what_the_target_lacks(width: int) -> None:
    suite, _ = sample()
    lacking = {"kip101-2b": {"hw": "toy has no move"}, "v3-reassignment": {"hw": "toy has no elect"}}
    left = tuple(each for each in suite.results if (each.scenario, each.protocol) != ("kip101-2b", "hw"))
    text = _printed(replace(suite, results=left, unplayed=lacking), width)
    words = " ".join(text.replace("│", " ").split())
    assert ("toy has no move" in words, "toy has no elect" in words) == (True, True), text
    assert "v3-reassignment" in text
