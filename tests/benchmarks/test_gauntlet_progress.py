"""The progress says what is found, what is searched now, and how long the rest takes."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from rich.console import Console

from benchmarks.mutants import progress
from benchmarks.mutants.found import Found, Outcome
from benchmarks.mutants.progress import START_SEEDS, GauntletProgress
from benchmarks.mutants.search import Gauntlet

SEEDS = 100


def found(name: str, outcome: Outcome, played: int) -> Found:
    return Found(name=name, outcome=outcome, seed=None, kinds=("lost",), sentence="", played=played)


def shown(console: Console, done: Iterable[Found], ends: Iterable[Found]) -> None:
    """Show the progress of a gauntlet of a, b and c; a seed is known that shows c."""
    gauntlet = Gauntlet(range(SEEDS), hints={"c": 7})
    gauntlet.playing["c"] = None
    with GauntletProgress(console, gauntlet, "abc", done) as shows:
        for each in ends:
            shows.end(each)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that says the first of its values, then the next."""
    values = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: values.pop(0) if len(values) > 1 else values[0])
    return values


def test_each_mutant_has_a_line_with_what_is_found_and_what_is_to_go(clock: list[float]) -> None:
    clock[:] = [0.0, (START_SEEDS + SEEDS) * 60.0]  # a minute a seed
    out = io.StringIO()
    ends = [found("b", Outcome.SURVIVED, SEEDS), found("c", Outcome.FOUND, 1)]
    shown(Console(file=out, width=200), [found("a", Outcome.FOUND, 1)], ends)
    to_go = START_SEEDS + 1
    assert [
        f"2/3 b survived [1 found, 1 not, about {to_go} min to go]",
        "3/3 c found: lost [2 found, 1 not]",
    ] == out.getvalue().splitlines()


@pytest.mark.parametrize("colours", [False, True])
def test_terminal_shows_what_is_searched_now_and_heeds_no_color(
    monkeypatch: pytest.MonkeyPatch, colours: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=True, color_system="standard", legacy_windows=False)
    shown(console, [], [found("a", Outcome.FOUND, 1)])
    assert "1/3 a found: lost" in out.getvalue()
    assert "1 found, 0 not" in out.getvalue().replace("1/3 a found", "") and ": c" in out.getvalue()
    assert colours == ("\x1b[3" in out.getvalue())
