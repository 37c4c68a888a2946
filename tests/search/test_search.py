"""A search has the same results with any number of processes, and stops when asked to."""

from __future__ import annotations

import argparse
import errno
import os
import pickle
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import shortage
from harness.cleanup.process import until
from harness.cli.run import configure, runs_of
from harness.model import EXIT_CODES, UsageError, Verdict
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.search import simulated_search
from harness.search.chaos import Limit
from harness.search.random_runs import RandomRuns
from harness.search.search import search
from harness.search.simulated_search import search_simulated
from harness.suite.options import Options
from harness.workload.plan import NO_CLIENTS
from targets import VIRTUAL_HOST as SIM
from tests.kept import exhaustive
from tests.search.results import result_of

RUNS = RandomRuns(target="broker", variant="hw", host=SIM)
# Of these seed 2 is the first that shows a violation.
SHORT = replace(RUNS, narrow=True)


def never(_: RunResult) -> bool:
    return False


def kept_in(results: Path) -> list[tuple[int, set[str]]]:
    """Return the seed of each finding that is kept, and the names of its files."""
    runs = [run for suite in results.glob("*-search-*") for run in suite.iterdir()]
    return sorted((int(run.name.split("-")[1]), {path.name for path in run.iterdir()}) for run in runs)


@exhaustive
@pytest.mark.slow
def test_search_in_two_processes_finds_what_one_finds_in_the_same_order() -> None:
    seeds = range(3, 28)
    one, two = (
        [replace(result, seconds=0.0) for result in search(RUNS, seeds, jobs=jobs, stop=never)] for jobs in (1, 2)
    )
    assert list(seeds) == [result.seed for result in one]
    assert one == two


@exhaustive
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
    assert Verdict.INVALID is search_simulated(SHORT, options, Limit(seeds=40), console)
    printed = console.export_text()
    assert "1 invalid" in printed
    assert "again: fencepost run --host sim " in printed
    ((_, found),) = kept_in(tmp_path)
    assert found == {"history.jsonl", "schedule.txt", "anomalies.json", "logs"}
    assert "interrupted; seeds 0 to " in printed
    assert f"findings: {next(tmp_path.glob('*-search-0'))}" == printed.splitlines()[-1]


def test_search_that_is_interrupted_before_it_found_something_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> Iterator[RunResult]:
        yield result_of(Verdict.VALID, seed=0)
        raise KeyboardInterrupt

    monkeypatch.setattr(simulated_search, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search_simulated(SHORT, Options(host=SIM, seed=0, results=tmp_path, jobs=1), Limit(seeds=40), Console())
    assert [] == list(tmp_path.iterdir())


def test_search_keeps_what_it_finds_before_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def stopping(*arguments: Any, **named: Any) -> Iterator[RunResult]:
        for result in search(*arguments, **named):
            yield result
            # The next result comes only once this one is on the disk.
            found.extend([result.seed] if result.is_finding else [])
            assert found[: simulated_search.KEPT_MAX] == [seed for seed, _ in kept_in(tmp_path)]

    seconds = iter(range(1_000))
    monkeypatch.setattr(simulated_search, "search", stopping)
    monkeypatch.setattr(simulated_search.time, "monotonic", lambda: float(next(seconds)))
    options = Options(host=SIM, seed=0, results=tmp_path, jobs=1)
    limit = Limit(seeds=1, seconds=12.0)
    assert Verdict.INVALID is search_simulated(SHORT, options, limit, Console(), shrunk_max=0)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=exhaustive)])
def test_search_that_a_signal_ends_leaves_its_findings_and_ends_with_their_exit_code(
    tmp_path: Path, ending: signal.Signals
) -> None:
    words = [
        "run",
        "--host",
        "sim",
        "--protocol",
        "hw",
        "--narrow",
        "--seed",
        "0",
        "--seeds",
        "1000000",
        "--jobs",
        "2",
    ]
    command = [sys.executable, "-m", "harness.cli.main", *words, "--results", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as searching:
        assert until(lambda: bool(list(tmp_path.glob("*-search-0/*/anomalies.json"))), 60)
        searching.send_signal(ending)
        out, err = searching.communicate(timeout=60)
    assert (EXIT_CODES["invalid"], "") == (searching.returncode, err)
    (folder,) = tmp_path.glob("*-search-0")
    assert f"findings: {folder}" == out.splitlines()[-1]
    assert all("anomalies.json" in files for _, files in kept_in(tmp_path))


# --- limits of the machine -----------------------------------------------------------------------------------
@pytest.mark.slow
def test_search_whose_process_is_killed_says_so_and_keeps_what_it_has_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killing(*arguments: Any, **named: Any) -> Iterator[RunResult]:
        for result in search(*arguments, **named):
            yield result
            if result.is_finding:
                for child in active_children():
                    child.kill()

    monkeypatch.setattr(simulated_search, "search", killing)
    console = Console(record=True, width=150)
    options = Options(host=SIM, seed=0, results=tmp_path, jobs=2)
    assert Verdict.INVALID is search_simulated(SHORT, options, Limit(seeds=2_000), console, shrunk_max=0)
    printed = " ".join(console.export_text().split())
    assert "a process of the search was killed by SIGKILL, as the kernel does where memory is used up" in printed
    assert "(--jobs)" in printed
    assert kept_in(tmp_path)


@pytest.mark.parametrize("finds", [False, True])
def test_search_without_memory_names_the_limit_and_is_unknown_unless_it_found_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finds: bool
) -> None:
    monkeypatch.setattr(shortage.resource, "getrlimit", lambda _: (300 * 1024 * 1024, 0))
    play = Player.play_into

    def without_memory(self: Player, history: Any, spec: RunSpec, *rest: Any, **named: Any) -> str:
        if spec.seed == 3 and named.get("keep") is None:
            raise MemoryError
        return play(self, history, spec, *rest, **named)

    monkeypatch.setattr(Player, "play_into", without_memory)
    console = Console(record=True, width=200)
    options = Options(host=SIM, seed=2 if finds else 3, results=tmp_path, jobs=1)
    verdict = search_simulated(SHORT, options, Limit(seeds=40), console, shrunk_max=0)
    assert (Verdict.INVALID if finds else Verdict.UNKNOWN) is verdict
    assert finds == bool(kept_in(tmp_path))
    printed = console.export_text()
    assert "ended at seed 3: out of memory: ulimit -v is 307200 KiB" in printed
    assert "fewer processes at a time (--jobs)" in printed


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full; make room"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EFBIG, "no file may be larger"),
        (errno.EMFILE, "too many open files: ulimit -n is"),
        (errno.ENOMEM, "out of memory"),
    ],
)
def test_search_that_cannot_keep_what_it_finds_says_which_limit_it_met_and_tells_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    write = Path.write_text

    def full(path: Path, *arguments: Any, **named: Any) -> int:
        if path.name == "schedule.txt":
            raise OSError(number, os.strerror(number))
        return write(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", full)
    console = Console(record=True, width=300)
    options = Options(host=SIM, seed=0, results=tmp_path, jobs=1)
    limit = Limit(seeds=40, first=True)
    assert Verdict.INVALID is search_simulated(SHORT, options, limit, console)
    printed = console.export_text()
    assert "again: fencepost run --host sim " in printed
    assert "findings not kept whole: " in printed
    assert says in printed


@pytest.mark.slow
def test_search_under_a_limit_of_a_files_size_names_it_and_ends_with_the_code_of_what_it_found(
    tmp_path: Path,
) -> None:
    words = ["run", "--host", "sim", "--protocol", "hw", "--narrow", "--seed", "0", "--seeds", "40", "--jobs", "1"]
    command = [sys.executable, "-m", "harness.cli.main", *words, "--results", str(tmp_path), "--stop-at-first"]
    limited = f"ulimit -f 16; exec {shlex.join(command)}"
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, timeout=120, check=False)
    assert (EXIT_CODES["invalid"], False) == (done.returncode, "Traceback" in done.stderr)
    assert "findings not kept whole: " in done.stdout
    assert "no file may be larger than 8 KiB (ulimit -f); raise the limit" in done.stdout


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
        "fencepost run --host local --target kafka:3.9.1 --rule min.insync.replicas=2 --power-tier watermark "
        "--seed 7 --nemesis kill,hold"
    ) == changed.spec(7).command
    assert "kafka:3.9.1+min.insync.replicas=2" == changed.name
