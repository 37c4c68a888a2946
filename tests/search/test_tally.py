"""What a search prints."""

from __future__ import annotations

from harness.cli.searching import Tally
from harness.cli.tallies import SearchProgress, print_tally
from rich.console import Console

from harness.model import Kind, Verdict
from tests.cli.test_searching import trial_of


def printed(tally: Tally) -> str:
    console = Console(record=True, width=120)
    print_tally(tally, console, wall_s=2.0)
    return console.export_text()


def test_tally_prints_kinds_with_what_they_are_faults_that_bit_and_how_fast_it_was() -> None:
    tally = Tally()
    tally.take(trial_of(Verdict.INVALID, Kind.LOST))
    tally.take(trial_of(Verdict.PERMITTED, Kind.LAST_STANDING))
    text = printed(tally)
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["lost", "invalid", "1"] in lines
    assert ["last-standing", "permitted", "1"] in lines
    assert ["kill", "4", "2"] in lines
    assert "2 seeds: 1 permitted, 1 invalid" in text
    assert "6 elections, 8 records acknowledged by all, 10 steps, 1 s of virtual time" in text
    assert "2.0 s; 4.0 seeds per second and core" in text


def test_tally_of_nothing_found_says_so() -> None:
    tally = Tally()
    tally.take(trial_of(Verdict.VALID))
    assert "nothing" in printed(tally)


def test_progress_tells_a_line_now_and_then_where_there_is_no_terminal(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("harness.cli.tallies.LINE_EVERY_S", 0.0)
    console, tally = Console(record=True, width=120), Tally()
    with SearchProgress(console, 7) as progress:
        tally.take(trial_of(Verdict.INVALID, Kind.LOST))
        progress.step(tally)
    assert "[     1/7] 4 seeds/s per core, 1 findings" in console.export_text()
