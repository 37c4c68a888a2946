"""A replay on real processes names the steps that the simulator plays; to skip one of them proves nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from checkers.judge import judge
from harness.events import Step
from harness.history.memory import MemoryHistory
from harness.model import Kind, OpType, Verdict, events_of
from harness.search.random_runs import RandomRuns
from harness.search.replay import as_replay
from harness.search.simulated import play_in_memory, sim_player
from targets import VIRTUAL_HOST as SIM
from targets.broker_target.target import TARGET

# A seed that skips steps, and whose run proves something all the same.
SKIPS = 2


def runs(host: str = "local", **options: object) -> RandomRuns:
    return RandomRuns(target="broker", variant="kip380", host=host, **options)  # type: ignore[arg-type]


def test_seed_is_the_same_schedule_on_every_host() -> None:
    assert runs("local").spec(5).scenario == runs(SIM).spec(5).scenario
    assert runs("local", alike=True).spec(5).scenario != runs(SIM).spec(5).scenario


def test_replay_must_play_what_the_simulator_plays() -> None:
    spec = as_replay(runs().spec(SKIPS))
    _, ops = play_in_memory(sim_player(TARGET), runs(SIM).spec(SKIPS))
    skipped = {step.line for _, step in events_of(ops, Step) if step.skipped}
    lines = {step.line for step in spec.scenario.steps}
    assert skipped
    assert {*spec.must_play} == lines - skipped


def test_simulated_run_and_one_that_every_target_can_play_are_no_replays() -> None:
    for spec in (runs(SIM).spec(SKIPS), runs(alike=True).spec(SKIPS)):
        assert as_replay(spec) is spec


def test_run_that_skips_such_a_step_proves_nothing() -> None:
    spec = runs(SIM).spec(SKIPS)
    _, ops = play_in_memory(sim_player(TARGET), spec)
    skipped = next(step for _, step in events_of(ops, Step) if step.skipped)
    assert Verdict.UNKNOWN > judge(spec, ops).verdict

    replay = replace(spec, must_play=(skipped.line,))
    history = MemoryHistory(Path("T"))
    sim_player(TARGET).play_into(history, replay, Path())
    result = judge(replay, history.ops)
    (found,) = (each for each in result.anomalies if each.kind is Kind.VACUOUS)
    assert f"Line {skipped.line}, {skipped.text!r}, was skipped ({skipped.skipped})" in found.sentence
    assert Verdict.UNKNOWN is result.verdict
    assert all(op.type is OpType.INFO for op, step in events_of(history.ops, Step) if step.skipped)
