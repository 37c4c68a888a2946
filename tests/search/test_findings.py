"""A finding is kept whole: its schedule, its history, its anomalies and the oracles' violations."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.judge import judge
from harness.history.file import read_history
from harness.model import ORACLES
from harness.run.spec import RunSpec
from harness.run.store import Run, create_suite, read_anomalies
from harness.search.findings import _keep_conf, keep_simulated
from harness.search.random_runs import RandomRuns
from harness.search.shrink.source import read_source
from harness.search.shrink.subject import Subject
from harness.search.simulated import sim_player, simulate
from harness.suite.scenario_files import read_scenario
from targets import VIRTUAL_HOST as SIM
from targets.simulator.engine.trace import Detail, Trace
from tests.kept import exhaustive, keep


@pytest.mark.slow
@exhaustive
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
    seen = [a.sentence for a in found.anomalies if a.kind in ORACLES]
    assert seen == [line.partition(": ")[2] for line in kept.oracles.read_text(encoding="utf-8").splitlines()]
    again = simulate(player, replace(spec, scenario=read_scenario(kept.schedule)))
    assert (found.sentences, found.activity.steps) == (again.sentences, again.activity.steps)


def digest(spec: RunSpec) -> str:
    """Return the hash of every step of the spec's run."""
    trace = Trace(Detail.EVENTS)
    simulate(sim_player(RandomRuns(target="broker", variant="kip380", host=SIM).load_target(), trace), spec)
    return trace.digest


@pytest.mark.parametrize(("seed", "alike"), keep([
    pytest.param(5, False, id="one-partition"), pytest.param(12, False, id="wide"),
    pytest.param(20, False, id="older-format"), pytest.param(25, False, id="one-replica"),
    pytest.param(5, True, id="alike"),
], "wide", "older-format"))  # fmt: skip
@pytest.mark.slow
def test_stored_schedule_is_the_run_of_its_seed_when_it_is_played_or_shrunk(
    seed: int, alike: bool, tmp_path: Path
) -> None:
    """Its file has another name, from which broker ids must not be drawn; the history says how it was played."""
    runs = RandomRuns(target="broker", variant="kip380", host=SIM, alike=alike)
    kept = keep_simulated(sim_player(runs.load_target()), runs.spec(seed), create_suite(tmp_path, "suite"))
    played = digest(runs.spec(seed))
    assert played == digest(replace(runs, schedule=kept.schedule).spec(seed))
    for path in (kept.path, kept.schedule):
        found = read_source(path, protocol=None, rules=(), seed=None)
        subject = Subject.of(
            found.protocol, found.rules, seed=found.seed, name=kept.shrunk.stem, alike=found.alike
        )
        assert played == digest(subject.spec(found.scenario))


def test_kept_run_without_a_violation_has_no_page_of_oracles(tmp_path: Path) -> None:
    runs = RandomRuns(target="broker", variant="kip380", host=SIM)
    kept = keep_simulated(sim_player(runs.load_target()), runs.spec(5), create_suite(tmp_path, "suite"))
    assert [] == read_anomalies(kept)
    assert not kept.oracles.exists()
    assert kept.history.exists()


def test_configuration_is_kept_without_what_its_links_lead_to(tmp_path: Path) -> None:
    """A node of this machine may write to its folder: what it links to is no part of a finding, nor endless."""
    run = Run(path=tmp_path / "run")
    nodes = run.path / "nodes"
    for name in "ABC":
        (nodes / name / "conf").mkdir(parents=True)
        (nodes / name / "conf" / "broker.json").write_text(name)
    (tmp_path / "secret").write_text("secret")
    (nodes / "A" / "conf" / "link").symlink_to(tmp_path / "secret")
    (nodes / "A" / "conf" / "endless").symlink_to("/dev/zero")
    os.mkfifo(nodes / "A" / "conf" / "fifo")
    shutil.rmtree(nodes / "C" / "conf")
    (nodes / "C" / "conf").symlink_to(tmp_path)
    (nodes / "D").symlink_to(nodes / "B")
    _keep_conf(run)
    kept = sorted(str(path.relative_to(run.path / "conf")) for path in (run.path / "conf").rglob("*"))
    assert ["A", "A/broker.json", "A/endless", "A/link", "B", "B/broker.json"] == kept
    assert (run.path / "conf" / "A" / "link").is_symlink()
    assert (run.path / "conf" / "A" / "endless").is_symlink()
