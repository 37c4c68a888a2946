"""The tally of a search, and how it is printed."""

from __future__ import annotations

import pytest
from rich.console import Console

from harness.model import Kind, Verdict
from harness.run.result import RunResult
from harness.search.tally import Tally
from harness.search.tally_tables import SearchProgress, print_tally
from tests.search.results import result_of


def tally_of(*results: RunResult) -> Tally:
    tally = Tally()
    for result in results:
        tally.add(result)
    return tally


def test_tally_counts_seeds_faults_and_kinds() -> None:
    tally = tally_of(result_of(Verdict.VALID), result_of(Verdict.PERMITTED, Kind.PERMITTED, Kind.PERMITTED))
    assert (2, 6, 8, 10, 1.0) == (tally.seeds, tally.elections, tally.acked, tally.steps, tally.virtual_s)
    assert ({"kill": 4}, {"kill": 2}) == (dict(tally.asked), dict(tally.bit))
    assert {Kind.PERMITTED: 1} == dict(tally.kinds)
    assert 4.0 == tally.seeds_per_second
    assert [] == tally.findings
    assert Verdict.VALID is tally.verdict


@pytest.mark.parametrize(("verdict", "kind"), [
    (Verdict.INVALID, Kind.LOST),
    (Verdict.INVALID, Kind.ORACLE_PREFIX),
    (Verdict.HANG, Kind.STUCK),
    (Verdict.UNKNOWN, Kind.UNREADABLE),
])  # fmt: skip
def test_tally_keeps_findings_and_is_as_severe_as_the_worst(verdict: Verdict, kind: Kind) -> None:
    valid = [result_of(Verdict.VALID, seed=seed) for seed in range(9)]
    tally = tally_of(*valid, result_of(verdict, kind, seed=9))
    assert [9] == [result.seed for result in tally.findings]
    assert verdict is tally.verdict


def test_tally_is_unknown_when_half_of_the_seeds_prove_nothing() -> None:
    tally = tally_of(result_of(Verdict.VALID), result_of(Verdict.UNKNOWN, Kind.VACUOUS))
    assert Verdict.UNKNOWN is tally.verdict
    tally.add(result_of(Verdict.VALID))
    assert Verdict.VALID is tally.verdict
    assert [] == tally.findings


# --- printed tables ------------------------------------------------------------------------------------------
def printed(tally: Tally) -> str:
    console = Console(record=True, width=120)
    print_tally(tally, console, wall_s=2.0)
    return console.export_text()


def test_table_has_kinds_with_their_verdicts_and_faults_that_bit_and_how_fast_it_was() -> None:
    text = printed(
        tally_of(
            result_of(Verdict.INVALID, Kind.LOST, Kind.ORACLE_COMMITTED),
            result_of(Verdict.PERMITTED, Kind.LAST_STANDING),
        )
    )
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["lost", "invalid", "1"] in lines
    assert ["last-standing", "permitted", "1"] in lines
    assert lines.index(["oracle-committed", "invalid", "1"]) < lines.index(["lost", "invalid", "1"])
    assert ["kill", "4", "2"] in lines
    assert "2 seeds: 1 permitted, 1 invalid" in text
    assert "6 elections, 8 records acknowledged by all, 0 steps skipped as not applicable, 10 steps" in text
    assert "2.0 s; 4.0 seeds per second and core" in text


def test_table_says_when_nothing_was_found() -> None:
    assert "nothing" in printed(tally_of(result_of(Verdict.VALID)))


def test_progress_prints_a_line_now_and_then_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.search.tally_tables.LINE_EVERY_S", 0.0)
    console = Console(record=True, width=120)
    with SearchProgress(console, 7) as progress:
        progress.step(tally_of(result_of(Verdict.INVALID, Kind.LOST)))
    assert "[     1/7] 4 seeds/s per core, 1 findings" in console.export_text()
