"""What a search finds is kept whole: its schedule, its history, what was proven and what the oracles said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from harness.cli.findings import keep_trial
from harness.cli.searching import Order
from harness.cli.trials import judge_ops, run_trial

from harness.history import read_history
from harness.run.store import create_suite, read_anomalies
from harness.schedule import read_scenario


def test_kept_trial_can_be_judged_and_played_again_from_its_folder(tmp_path: Path) -> None:
    spec = Order(target="broker", variant="hw").spec()
    seed = next(seed for seed in range(20) if run_trial(spec, seed).violations)
    kept = keep_trial(create_suite(tmp_path, "suite"), spec, seed)
    ops = read_history(kept.run.history)
    assert list(kept.trial.anomalies) == read_anomalies(kept.run) == judge_ops(ops)
    assert len(ops) == pq.read_metadata(kept.run.parquet).num_rows
    told = (kept.run.path / "oracles.txt").read_text(encoding="utf-8")
    assert all(violation.sentence in told for violation in kept.trial.violations)
    again = run_trial(replace(spec, schedule=read_scenario(kept.schedule)), seed)
    assert kept.trial.sentences == again.sentences
    assert kept.trial.steps == again.steps


def test_kept_trial_without_a_violation_has_no_word_of_oracles(tmp_path: Path) -> None:
    kept = keep_trial(create_suite(tmp_path, "suite"), Order(target="broker", variant="kip380").spec(), 5)
    assert not kept.trial.violations
    assert not (kept.run.path / "oracles.txt").exists()
    assert kept.run.history.exists()
