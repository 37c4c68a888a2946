"""A search takes all cores that it may use, if there is enough to play."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.console import Console

from harness.search import simulated_search
from harness.search.chaos import Limit
from harness.search.cores import PAYS_S, PAYS_SEEDS, cores, jobs_for
from harness.search.random_runs import RandomRuns
from harness.search.simulated_search import search_simulated
from harness.suite.options import Options
from targets import VIRTUAL_HOST as SIM


@pytest.fixture
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5})


@pytest.mark.usefixtures("three_cores")
def test_few_seeds_are_played_in_this_process_and_many_on_every_core() -> None:
    assert 3 == cores()
    assert [1, 3] == [jobs_for(seeds) for seeds in (PAYS_SEEDS, PAYS_SEEDS + 1)]
    assert [1, 3] == [jobs_for(10**9, seconds) for seconds in (PAYS_S, PAYS_S + 1)]


@pytest.mark.usefixtures("three_cores")
@pytest.mark.parametrize(("asked", "seeds", "expected"), [(None, 200, 3), (2, 200, 2), (None, 5, 1)])
def test_search_takes_the_cores_unless_it_is_told_how_many(
    asked: int | None, seeds: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    monkeypatch.setattr(simulated_search, "search", lambda *_, jobs, **__: taken.append(jobs) or iter(()))
    monkeypatch.setattr(simulated_search, "print_tally", lambda *_, **__: None)
    runs = RandomRuns(target="broker", variant="kip380", host=SIM)
    search_simulated(runs, Options(host=SIM, seed=0, results=tmp_path, jobs=asked), Limit(seeds=seeds), Console())
    assert [expected] == taken
