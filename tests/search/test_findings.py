"""A finding is kept whole: its schedule, its history, its anomalies and the oracles' violations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from checkers.judge import judge
from harness.history.file import read_history
from harness.model import ORACLES
from harness.run.store import create_suite, read_anomalies
from harness.search.findings import keep_simulated
from harness.search.random_runs import SIM, RandomRuns
from harness.search.simulated import sim_player, simulate
from harness.suite.scenario_files import read_scenario


def test_kept_run_can_be_judged_and_played_again_from_its_folder(tmp_path: Path) -> None:
    runs = RandomRuns(target="broker", variant="hw", host=SIM)
    player = sim_player(runs.load_target())
    results = (simulate(player, runs.spec(seed)) for seed in range(20))
    found = next(each for each in results if any(a.kind in ORACLES for a in each.anomalies))
    spec = runs.spec(found.seed)
    kept = keep_simulated(player, spec, create_suite(tmp_path, "suite"))
    ops = read_history(kept.history)
    judged = judge(spec, ops)
    assert list(found.anomalies) == read_anomalies(kept) == list(judged.anomalies)
    assert len(ops) == pq.read_metadata(kept.parquet).num_rows
    seen = [a.sentence for a in found.anomalies if a.kind in ORACLES]
    assert seen == [line.partition(": ")[2] for line in kept.oracles.read_text(encoding="utf-8").splitlines()]
    again = simulate(player, replace(spec, scenario=read_scenario(kept.schedule)))
    assert (found.sentences, found.activity.steps) == (again.sentences, again.activity.steps)


def test_kept_run_without_a_violation_has_no_page_of_oracles(tmp_path: Path) -> None:
    runs = RandomRuns(target="broker", variant="kip380", host=SIM)
    kept = keep_simulated(sim_player(runs.load_target()), runs.spec(5), create_suite(tmp_path, "suite"))
    assert [] == read_anomalies(kept)
    assert not kept.oracles.exists()
    assert kept.history.exists()
