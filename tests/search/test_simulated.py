"""A simulated run follows from its seed and is judged as any run; a search finds each old bug."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.judge import judge
from harness.ability import Ability
from harness.events import Step
from harness.history.file import read_history
from harness.model import ORACLES, Kind, Verdict, events_of
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import SuiteDir
from harness.scenario.file import draw, parse
from harness.scenario.text import text_of
from harness.search.findings import keep_simulated
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from targets.broker_target.target import BrokerTarget
from targets.simulator.broker.environment import SimEnvironment
from targets.simulator.broker.world import World
from targets.simulator.engine.trace import Detail, Trace, first_difference
from tests.faults import NEMESES
from tests.kept import exhaustive, keep

QUIET = """title Nothing happens
source chance
nodes A B replicas, C controller
records m1 1, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3
"""


def spec_of(seed: int, variant: str = "kip380", steps: str = "") -> RunSpec:
    """Return the spec of a seed's random run, with these steps, if any, in place of its own."""
    spec = RandomRuns(target="broker", variant=variant, host=SIM).spec(seed)
    if not steps:
        return spec
    scenario = parse("T", QUIET + steps, "T", NEMESES)
    return replace(spec, scenario=scenario, draw=draw(scenario, seed))


def run(spec: RunSpec, trace: Trace | None = None) -> RunResult:
    return simulate(sim_player(RandomRuns(target="broker", variant="hw", host=SIM).load_target(), trace), spec)


class Unasked(BrokerTarget):
    """Our broker, which no operator can ask for anything."""

    abilities = frozenset({Ability.CONTROLLER, Ability.MEMBERS})


def test_random_run_skips_what_its_target_lacks_and_becomes_whole_without_it() -> None:
    steps = (
        "produce m1 acks=all\npass 20ms\nelect A\nexpire A\ndepose-controller C\nkill A\npass 20ms\nrestart A\n"
    )
    result, ops = play_in_memory(sim_player(Unasked()), spec_of(1, steps=steps))
    skipped = [step.skipped for _, step in events_of(ops, Step) if step.skipped]
    assert [f"broker has no {what}" for what in ("elect", "expire", "depose")] == skipped
    assert (Verdict.VALID, 1) == (result.verdict, result.activity.bit["kill"]), result.reason


def digests(seeds: range) -> Iterator[str]:
    for seed in seeds:
        trace = Trace(Detail.EVENTS)
        run(spec_of(seed), trace)
        yield trace.digest


def oracles_saw(result: RunResult) -> bool:
    return any(anomaly.kind in ORACLES for anomaly in result.anomalies)


# --- one run -------------------------------------------------------------------------------------------------
def test_run_counts_what_was_done_and_is_valid_when_nothing_is_wrong() -> None:
    result = run(spec_of(5))
    assert Verdict.VALID is result.verdict
    assert not result.is_finding
    done = result.activity
    assert (True, True, True) == (done.acked > 0, done.elections > 0, done.steps > 0)
    assert sum(done.bit.values()) > 0
    assert all(done.bit[kind] <= done.asked[kind] for kind in ("kill", "elect") if kind in done.bit)


def test_run_in_which_no_fault_bites_proves_nothing() -> None:
    result = run(spec_of(2, steps="\nproduce m1 acks=all meanwhile\npass 30ms\n"))
    assert (Verdict.UNKNOWN, "No fault of the schedule bit.") == (result.verdict, result.vacuous)
    assert not result.is_finding


def test_run_in_which_nothing_is_acknowledged_proves_nothing() -> None:
    result = run(spec_of(1, steps="\nkill A\nkill B\nproduce m1 acks=all meanwhile\npass 30ms\n"))
    assert Verdict.UNKNOWN is result.verdict
    assert "No record of the schedule was acknowledged" in result.vacuous


@exhaustive
@pytest.mark.slow
def test_result_names_first_what_an_oracle_saw_and_at_which_step() -> None:
    result = first_found("hw", range(10))
    assert Verdict.INVALID is result.verdict
    assert result.sentences[0].startswith("oracle-")
    assert ": Step " in result.sentences[0]


def test_result_is_the_same_from_memory_and_from_a_file(tmp_path: Path) -> None:
    spec, traces = spec_of(3, "hw"), (Trace(Detail.EVENTS), Trace(Detail.EVENTS))
    in_memory = run(spec, traces[0])
    player = sim_player(RandomRuns(target="broker", variant="hw", host=SIM).load_target(), traces[1])
    played = player.play(spec, SuiteDir(path=tmp_path).create_run(spec.name))
    in_file = judge(spec, read_history(played.history))
    assert replace(in_memory, seconds=0.0) == in_file
    assert traces[0].digest == traces[1].digest


# --- determinism ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@exhaustive
def test_seeds_give_the_same_runs_in_processes_with_different_hash_seeds() -> None:
    """For a thousand seeds, run benchmarks/search.py --twice by hand."""
    code = "from tests.search.test_simulated import digests; print(list(digests(range(10))))"
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
    assert 10 == len(set(first.split(", ")))


def test_planted_nondeterminism_is_named_at_its_first_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """One random number more is drawn than the seed says."""
    step, lines = World.step, []
    for draws in (0, 1):
        trace = Trace(Detail.EVENTS, keep=True)

        def drawing(world: World, draws: int = draws) -> bool:
            if world.steps == 100 and draws:
                world.clock.random.random()
            return step(world)

        monkeypatch.setattr(World, "step", drawing)
        run(spec_of(5), trace)
        lines.append(trace.lines)
    found = first_difference(*lines)
    assert found is not None
    # The trace has more lines than steps: it also has what nodes emitted.
    assert 100 <= int(found.split(":")[0].removeprefix("step ")) < 400


# --- canaries ------------------------------------------------------------------------------------------------
def first_found(variant: str, seeds: range) -> RunResult:
    """Return the first result in which an oracle saw a violation; a hang alone does not count."""
    results = (run(spec_of(seed, variant)) for seed in seeds)
    found = next(filter(oracles_saw, results), None)
    assert found is not None, f"{variant}: no violation within seeds {seeds.start} to {seeds.stop - 1}"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("variant", keep(["hw", "kip380+truncate_to=high_watermark"], "hw"))
def test_canary_is_found_at_once(variant: str) -> None:
    first_found(variant, range(10))


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    keep(["kip101", "kip279", "kip320+fence_fetch=no", "kip380+drop_stale_answer=no"], "kip101"),
)
def test_canary_is_found_within_a_few_hundred_seeds(variant: str) -> None:
    first_found(variant, range(300))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", keep([20, 200], 20))
def test_kip380_shows_nothing_over_many_seeds_but_losses_that_are_permitted(seeds: int) -> None:
    results = [run(spec_of(seed)) for seed in range(seeds)]
    assert [] == [result.sentences for result in results if result.is_finding]
    kinds = {anomaly.kind for result in results for anomaly in result.anomalies}
    permitted = {Kind.PERMITTED, Kind.RETURNED, Kind.LAST_STANDING, Kind.UNCLEAN}
    assert kinds <= {*permitted, Kind.UNPROMISED, Kind.VACUOUS}
    assert sum(result.activity.elections for result in results) > 2 * seeds
    assert sum(result.verdict is Verdict.UNKNOWN for result in results) < seeds / 5


@pytest.mark.slow
@exhaustive
def test_schedule_of_a_finding_finds_it_again() -> None:
    first = first_found("hw", range(10))
    spec = spec_of(first.seed, "hw")
    read = parse(spec.scenario.name, text_of(spec.scenario), "schedule.txt", NEMESES)
    again = run(replace(spec, scenario=read))
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)


def test_run_in_which_we_have_a_bug_is_unknown_and_its_traceback_is_kept_when_it_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(_self: SimEnvironment, _cluster: object) -> None:
        raise KeyError("a bug of ours")

    monkeypatch.setattr(SimEnvironment, "record_evidence", bug)
    spec = spec_of(5)
    result = run(spec)
    assert (Verdict.UNKNOWN, "KeyError: 'a bug of ours'", True) == (
        result.verdict,
        result.reason,
        result.is_finding,
    )
    player = sim_player(RandomRuns(target="broker", variant="hw", host=SIM).load_target())
    kept = keep_simulated(player, spec, SuiteDir(path=tmp_path))
    assert "in bug\n" in kept.traceback.read_text(encoding="utf-8")
    assert True is kept.schedule.exists()
