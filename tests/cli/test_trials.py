"""A trial follows from its seed; it is judged as any run; and a search for each old bug finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.chance.draw import draw_schedule
from harness.cli.searching import Order
from harness.cli.trials import Trial, TrialSpec, run_trial
from harness.history import Clock, History
from harness.model import Kind, Verdict
from harness.schedule import parse
from nemesis import NEMESES
from targets.simulator.trace import Detail, Trace, first_difference
from targets.simulator.world import World

QUIET = """title Nothing happens
source chance
nodes A B replicas, C controller
records m1 1, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3
"""


def spec_of(variant: str = "kip380", schedule: str = "") -> TrialSpec:
    spec = Order(target="broker", variant=variant).spec()
    return replace(spec, schedule=parse("T", QUIET + schedule, "T")) if schedule else spec


def digests(seeds: range) -> Iterator[str]:
    for seed in seeds:
        yield run_trial(replace(spec_of(), trace=Trace(Detail.EVENTS)), seed).digest


# --- what a trial is -----------------------------------------------------------------------------------------
def test_trial_counts_what_was_done_and_is_valid_when_nothing_is_wrong() -> None:
    trial = run_trial(spec_of(), 5)
    assert Verdict.VALID is trial.verdict
    assert not trial.found
    assert (True, True) == (trial.acked > 0, trial.elections > 0)
    assert sum(trial.bit.values()) > 0
    assert all(trial.bit[kind] <= trial.asked[kind] for kind in ("kill", "elect") if kind in trial.bit)


def test_trial_proves_nothing_when_no_fault_bites() -> None:
    trial = run_trial(
        spec_of(schedule="\nproduce m1 acks=all meanwhile\npass 30ms\nkill D\n".replace("kill D\n", "")), 1
    )
    assert (Verdict.UNKNOWN, "no fault of the schedule bit") == (trial.verdict, trial.vacuous)
    assert not trial.found


def test_trial_proves_nothing_when_nothing_is_acknowledged() -> None:
    trial = run_trial(spec_of(schedule="\nkill A\nkill B\nproduce m1 acks=all meanwhile\npass 30ms\n"), 1)
    assert Verdict.UNKNOWN is trial.verdict
    assert "no record of the schedule was acknowledged" in trial.vacuous


def test_trial_tells_what_it_found_worst_first_and_at_which_step() -> None:
    trial = first_found("hw", range(10))
    assert Verdict.INVALID is trial.verdict
    assert trial.sentences[0].startswith("Step ")


def test_trial_is_the_same_wherever_its_history_goes(tmp_path: Path) -> None:
    def open_history(clock: Clock) -> History:
        return History(tmp_path / "history.jsonl", clock)

    in_memory = run_trial(replace(spec_of("hw"), trace=Trace(Detail.EVENTS)), 3)
    in_file = run_trial(replace(spec_of("hw"), trace=Trace(Detail.EVENTS), make_history=open_history), 3)
    assert replace(in_memory, seconds=0.0) == replace(in_file, seconds=0.0)


# --- determinism ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_seeds_give_the_same_trials_in_processes_with_different_hash_seeds() -> None:
    """By hand with a thousand seeds: benchmarks/search.py."""
    code = "from tests.cli.test_trials import digests; print(list(digests(range(25))))"
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    )
    assert first == second
    assert 25 == len(set(first.split(", ")))


def test_planted_nondeterminism_is_named_at_its_first_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody draws from chance once more than the seed says."""
    step, lines = World.step, []
    for draws in (0, 1):
        trace = Trace(Detail.EVENTS, keep=True)

        def drawing(world: World, draws: int = draws) -> bool:
            if world.steps == 100 and draws:
                world.clock.random.random()
            return step(world)

        monkeypatch.setattr(World, "step", drawing)
        run_trial(replace(spec_of(), trace=trace), 5)
        lines.append(trace.lines)
    found = first_difference(*lines)
    assert found is not None
    # What was told besides the steps is in the trace too.
    assert 100 <= int(found.split(":")[0].removeprefix("step ")) < 400


# --- canaries ------------------------------------------------------------------------------------------------
def first_found(variant: str, seeds: range) -> Trial:
    """The first trial of which an oracle sees something; a hang is nothing to see."""
    spec = spec_of(variant)
    found = next((trial for trial in (run_trial(spec, seed) for seed in seeds) if trial.violations), None)
    assert found is not None, f"{variant}: no violation within seeds {seeds.start} to {seeds.stop - 1}"
    return found


@pytest.mark.parametrize(("variant", "seeds"), [("hw", 10), ("kip380+truncate_to=high_watermark", 10)])
def test_canary_is_found_at_once(variant: str, seeds: int) -> None:
    first_found(variant, range(seeds))


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["kip101", "kip279", "kip320+fence_fetch=no", "kip380+drop_stale_answer=no"])
def test_canary_is_found_within_a_few_hundred_seeds(variant: str) -> None:
    first_found(variant, range(300))


@pytest.mark.slow
def test_kip380_shows_nothing_over_a_few_hundred_seeds_but_losses_that_are_permitted() -> None:
    trials = [run_trial(spec_of(), seed) for seed in range(200)]
    assert [] == [trial.sentences for trial in trials if trial.found]
    kinds = {anomaly.kind for trial in trials for anomaly in trial.anomalies}
    assert kinds <= {Kind.PERMITTED, Kind.RETURNED, Kind.LAST_STANDING, Kind.UNPROMISED}
    assert sum(trial.elections for trial in trials) > 400
    assert sum(trial.verdict is Verdict.UNKNOWN for trial in trials) < 40


def test_schedule_of_a_finding_finds_it_again() -> None:
    trial = first_found("hw", range(10))
    again = run_trial(replace(spec_of("hw"), schedule=draw_schedule(trial.seed, NEMESES)), trial.seed)
    assert replace(trial, seconds=0.0) == replace(again, seconds=0.0)
