"""A search has the same results with any number of processes, and stops when asked to."""

from __future__ import annotations

import argparse
import pickle
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.run import configure, runs_of
from harness.model import UsageError
from harness.run.result import RunResult
from harness.search import simulated_search
from harness.search.chaos import Limit
from harness.search.random_runs import SIM, RandomRuns
from harness.search.search import search
from harness.search.simulated_search import search_simulated
from harness.suite.options import Options
from harness.workload.plan import NO_CLIENTS
from tests.kept import exhaustive

RUNS = RandomRuns(target="broker", variant="hw", host=SIM)


def never(_: RunResult) -> bool:
    return False


@exhaustive
@pytest.mark.slow
def test_search_in_two_processes_finds_what_one_finds_in_the_same_order() -> None:
    seeds = range(3, 28)
    one, two = (
        [replace(result, seconds=0.0) for result in search(RUNS, seeds, jobs=jobs, stop=never)] for jobs in (1, 2)
    )
    assert list(seeds) == [result.seed for result in one]
    assert one == two


@pytest.mark.slow
def test_search_ends_with_the_first_result_that_is_enough() -> None:
    found = list(search(RUNS, range(40), jobs=1, stop=lambda result: result.is_finding))
    assert [False] * (len(found) - 1) + [True] == [result.is_finding for result in found]


@pytest.mark.slow
@exhaustive
def test_search_keeps_no_more_findings_than_an_engineer_reads_and_names_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_search, "KEPT_MAX", 1)
    console = Console(record=True, width=150)
    options = Options(host=SIM, seed=0, results=tmp_path, jobs=1)
    search_simulated(RUNS, options, Limit(seeds=12), console, shrunk_max=0)
    (folder,) = tmp_path.glob("*-search-0")
    assert 1 == len(list(folder.iterdir()))
    assert " more: " in console.export_text()


@pytest.mark.slow
def test_search_that_is_interrupted_prints_what_it_has_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **named: object) -> Iterator[RunResult]:
        for result in search(*args, **named):  # type: ignore[arg-type]
            yield result
            if result.is_finding:
                raise KeyboardInterrupt

    monkeypatch.setattr(simulated_search, "search", interrupted)
    console = Console(record=True, width=150)
    options = Options(host=SIM, seed=0, results=tmp_path, jobs=1)
    with pytest.raises(KeyboardInterrupt):
        search_simulated(RUNS, options, Limit(seeds=40), console)
    printed = console.export_text()
    assert "1 invalid" in printed
    assert "again: fencepost run --host sim --protocol hw --seed " in printed


# --- runs and variants ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("runs", [
    RandomRuns(target="broker", variant="kip999", host=SIM),
    RandomRuns(target="broker", variant="hw+no=no", host=SIM),
    RandomRuns(target="broker", variant="hw", host=SIM, changes=("fence_fetch=maybe",)),
    RandomRuns(target="broker", variant="hw", host=SIM, nemeses=("gremlin",)),
    RandomRuns(target="brocker", variant="hw", host=SIM),
])  # fmt: skip
def test_runs_of_what_is_not_there_are_refused(runs: RandomRuns) -> None:
    with pytest.raises(UsageError):
        runs.spec(1)


def test_rules_can_be_changed_in_the_variant_and_beside_it() -> None:
    one = RandomRuns(target="broker", variant="kip380+fence_fetch=no", host=SIM)
    two = RandomRuns(target="broker", variant="kip380", changes=("fence_fetch=no",), host=SIM)
    assert one.spec(1).rules == two.spec(1).rules
    assert "no" == one.rules["fence_fetch"]


def test_runs_of_a_seed_are_the_same_in_another_process() -> None:
    assert RUNS.spec(4) == pickle.loads(pickle.dumps(RUNS)).spec(4)


def test_narrow_runs_have_one_partition_and_no_clients_and_are_repeated_as_such() -> None:
    narrow = replace(RUNS, narrow=True)
    specs = [narrow.spec(seed) for seed in range(20)]
    assert not [spec for spec in specs if spec.scenario.further or spec.scenario.clients != NO_CLIENTS]
    assert [spec.scenario for spec in specs] != [RUNS.spec(seed).scenario for seed in range(20)]
    parser = argparse.ArgumentParser()
    configure(parser)
    arguments = parser.parse_args(shlex.split(specs[4].command)[2:])
    assert specs[4] == runs_of(arguments).spec(arguments.seed)


def test_command_repeats_the_run_with_all_that_was_changed() -> None:
    changed = RandomRuns(
        target="kafka",
        variant="3.9.1",
        host="local",
        changes=("min.insync.replicas=2",),
        nemeses=("kill", "hold"),
        power_tier="watermark",
    )
    assert (
        "fencepost run --host local --target kafka:3.9.1 --rule min.insync.replicas=2 --nemesis kill,hold "
        "--power-tier watermark --seed 7"
    ) == changed.spec(7).command
    assert "kafka:3.9.1+min.insync.replicas=2" == changed.name
