"""The figures of the search benchmark, and its comparison of the hashes of two processes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks import search
from benchmarks.search import VARIANTS, Found, digests
from harness.model import FencepostError, Kind, Verdict
from harness.run.result import RunResult
from harness.search.random_runs import RandomRuns
from targets import VIRTUAL_HOST as SIM
from targets.simulator.engine.trace import first_difference
from tests.kept import exhaustive
from tests.search.results import result_of


def result(seed: int, verdict: Verdict, *kinds: Kind) -> RunResult:
    return replace(result_of(verdict, *kinds, seed=seed), seconds=0.5)


def test_every_variant_is_one_that_can_be_searched() -> None:
    assert len(VARIANTS) == len(set(VARIANTS))
    for variant in VARIANTS:
        RandomRuns(target="broker", variant=variant, host=SIM).spec(0)


def test_median_counts_the_seeds_from_one_violation_to_the_next_and_hangs_apart() -> None:
    found = Found("hw")
    worst = {2: Verdict.INVALID, 3: Verdict.HANG, 5: Verdict.INVALID, 19: Verdict.INVALID}
    for seed in range(20):
        verdict = worst.get(seed, Verdict.VALID)
        found.add(result(seed, verdict, *([Kind.LOST] if verdict is Verdict.INVALID else [])))
    assert ("hw", "3", "3", "3", "4", "20", "2", "lost") == found.row()


def test_median_of_nothing_is_none() -> None:
    found = Found("kip380")
    found.add(result(0, Verdict.PERMITTED, Kind.PERMITTED, Kind.LAST_STANDING))
    assert ("kip380", "-", "-", "0", "-", "1", "2", "") == found.row()


@pytest.mark.slow
@exhaustive
@pytest.mark.parametrize("narrow", [False, True])
def test_figures_end_with_the_hits_that_were_asked_for(*, narrow: bool) -> None:
    console = Console(record=True, width=200)
    search.figures(["hw"], seeds=40, hits=2, jobs=1, narrow=narrow, console=console)
    text = console.export_text()
    words = next(line for line in text.splitlines() if line.startswith("hw ")).split()
    assert "2" == words[3]
    assert int(words[1]) < int(words[5]) < 40
    assert narrow == ("narrow schedules: " in text)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_seeds_twice_have_the_same_hashes() -> None:
    console = Console(record=True, width=200)
    assert 0 == search.twice("kip380", 3, console)
    assert "3 different hashes, 0 differ" in console.export_text()


def test_seed_that_differs_is_named_with_its_first_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [["a", "b"], ["a", "c"]], [["x", "1"], ["x", "2"]]
    answers = iter(given)
    monkeypatch.setattr(search, "_in_two_processes", lambda _: next(answers))
    console = Console(record=True, width=200)
    assert 1 == search.twice("kip380", 2, console)
    text = console.export_text()
    assert "3 different" not in text
    assert "1 differ" in text
    assert f"seed 1: {first_difference(*given[1])}" in text


@pytest.mark.slow
def test_process_that_fails_is_an_error() -> None:
    with pytest.raises(FencepostError, match="exit codes"):
        search.twice("kip999", 1, Console(record=True))


@exhaustive
def test_hashes_are_those_of_the_seeds() -> None:
    assert list(digests("kip380", range(4)))[2:] == list(digests("kip380", range(2, 4)))
