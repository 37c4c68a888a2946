"""Seeds that failed are kept with their schedules, each once, and play the same run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import UsageError, Verdict
from harness.night.known import LINES, KnownSeeds, chosen
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from tests.kept import exhaustive

RUNS = RandomRuns(target="broker", variant="hw", host=SIM)
NARROW = RandomRuns(target="broker", variant="hw", host=SIM, narrow=True)


def add(known: KnownSeeds, runs: RandomRuns = RUNS, seed: int = 6) -> None:
    known.add(runs, seed, night="n", kind="lost")


def test_seed_is_kept_once_and_another_way_to_draw_it_beside_it(tmp_path: Path) -> None:
    known = KnownSeeds(tmp_path / "known")
    assert () == known.read()
    for runs in (RUNS, RUNS, NARROW):
        add(known, runs)
    assert ["sim-broker-hw-seed-6", "sim-broker-hw-seed-6-narrow"] == [each.name for each in known.read()]
    assert {"sim-broker-hw-seed-6.txt", "sim-broker-hw-seed-6-narrow.txt", LINES} == {
        path.name for path in known.folder.iterdir()
    }


def test_torn_last_line_is_no_line_and_the_next_one_is_whole(tmp_path: Path) -> None:
    known = KnownSeeds(tmp_path)
    add(known)
    with (tmp_path / LINES).open("ab") as file:
        file.write(b'{"name": "x')
    assert 1 == len(known.read())
    add(known, seed=8)
    assert [6, 8] == [each.seed for each in known.read()]


@pytest.mark.parametrize("line", ["{}", "[1]", '{"name": "../x"}', "nothing"])
def test_line_that_is_none_of_ours_is_named(tmp_path: Path, line: str) -> None:
    known = KnownSeeds(tmp_path)
    add(known)
    with (tmp_path / LINES).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(UsageError, match=f"{LINES}:2: .*expected a seed that failed, or no such line"):
        known.read()


@pytest.mark.slow
@pytest.mark.parametrize("runs", [pytest.param(RUNS, marks=exhaustive), NARROW])
def test_schedule_of_a_known_seed_is_the_run_in_which_it_failed(tmp_path: Path, runs: RandomRuns) -> None:
    known = KnownSeeds(tmp_path)
    player = sim_player(runs.load_target())
    failed = next(
        result
        for result in (simulate(player, runs.spec(seed)) for seed in range(60))
        if result.verdict is Verdict.INVALID
    )
    add(known, runs, failed.seed)
    (kept,) = known.read()
    again = simulate(player, kept.runs(tmp_path, None).spec(kept.seed))
    assert (failed.anomalies, failed.activity) == (again.anomalies, again.activity)
    assert f"--schedule {tmp_path / kept.name}.txt" in again.rerun


def test_newest_of_each_host_are_chosen_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    known = KnownSeeds(tmp_path)
    for seed in (6, 8, 10):
        add(known, seed=seed)
    add(known, RandomRuns(target="broker", variant="kip101", host=SIM))
    found, left = chosen(known.read(), hosts=["sim", "local"], targets={("broker", "hw")}, most=2)
    assert ([10, 8], 1) == ([each.seed for each in found], left)
    assert ((), 0) == chosen(known.read(), hosts=["local"], targets={("broker", "hw")}, most=2)
