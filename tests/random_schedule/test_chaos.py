"""Chaos: rounds of aimed faults that each end whole, drawn for a time, and what they show in the simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.aims import AIMS, SERVICE
from harness.events import Corrupt, Healed, Injection, Repaired
from harness.events import Step as StepEvent
from harness.model import OpType, UsageError, Verdict, events_of
from harness.random_schedule.chaos import LINK_MOVES, WHOLE_WITHIN_S, draw_chaos, kinds_of
from harness.random_schedule.timing import REAL, VIRTUAL, Timing
from harness.scenario.file import Scenario, parse
from harness.scenario.steps import Act, Delay, Hold, Inject, Pass, Produce, Settle
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from harness.workload.plan import NO_CLIENTS
from targets.broker_target.target import TARGET
from tests.faults import NEMESES


def drawn(seed: int, *names: str, seconds: float = 60.0, timing: Timing = VIRTUAL) -> Scenario:
    kinds = kinds_of(names or ("all",), NEMESES)
    return draw_chaos(seed, NEMESES, kinds, seconds, timing=timing, clients=NO_CLIENTS)


def runs(*nemeses: str, seconds: float, protocol: str = "kip380", workload: str = "") -> RandomRuns:
    return RandomRuns(
        target="broker", variant=protocol, host="sim", nemeses=nemeses, seconds=seconds, workload=workload
    )


@pytest.mark.parametrize("timing", [VIRTUAL, REAL])
def test_schedule_is_as_long_as_the_time_and_its_rounds_end_whole(timing: Timing) -> None:
    scenario = drawn(3, seconds=100.0, timing=timing)
    acts = [step.act for step in scenario.steps]
    waits_s = sum(float(act.ms) for act in acts if isinstance(act, Pass)) / 1000 * timing.tempo
    settles = sum(isinstance(act, Settle) for act in acts)
    assert waits_s + settles - 1 >= 100.0
    assert (Produce("m1", acks=-1), Settle(), Settle()) == (*acts[:2], acts[-1])
    assert WHOLE_WITHIN_S == scenario.settings.heal_within_s * timing.slack


def test_seed_draws_one_schedule_and_its_text_is_read_again() -> None:
    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)
    scenario = drawn(5)
    assert replace(scenario, sources=("chance",)) == parse(scenario.name, text_of(scenario), "a file", NEMESES)


def test_every_fault_and_every_aim_is_drawn_in_the_long_run() -> None:
    acts = [step.act for step in drawn(1, seconds=1200.0).steps]
    injected = [act for act in acts if isinstance(act, Inject)]
    lasting = {name for name, fault in NEMESES.items() if not fault.heals}
    assert lasting <= {act.fault for act in injected}
    assert AIMS.keys() - {SERVICE} == {act.aim for act in injected}


def test_chosen_kinds_come_alone_with_what_undoes_them() -> None:
    faults = {
        step.act.fault for step in drawn(2, "pause", "hold", seconds=300.0).steps if isinstance(step.act, Inject)
    }
    assert {"pause", "resume"} == faults


def test_unknown_kind_and_one_that_only_undoes_are_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"nemesis 'pauze'.*pause"):
        kinds_of(("pauze",), NEMESES)
    with pytest.raises(UsageError, match="nemesis 'restart'"):
        kinds_of(("restart",), NEMESES)
    assert set(LINK_MOVES) < set(kinds_of(("all",), NEMESES))


def test_kind_after_a_hyphen_is_left_out() -> None:
    every = kinds_of(("all",), NEMESES)
    left = kinds_of(("all", "-pause", "-hold"), NEMESES)
    assert [kind for kind in every if kind not in ("pause", "hold")] == [*left]
    with pytest.raises(UsageError, match=r"nemesis 'pauze'.*pause"):
        kinds_of(("all", "-pauze"), NEMESES)
    with pytest.raises(UsageError, match="nemeses kill, -kill: none is left"):
        kinds_of(("kill", "-kill"), NEMESES)


def test_time_that_is_too_long_for_one_schedule_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="too many steps; expected a shorter time for one cluster"):
        drawn(1, seconds=1e6)


@pytest.mark.slow
def test_run_goes_on_for_its_time_becomes_whole_again_and_again_and_plays_again() -> None:
    spec = runs("all", seconds=16.0).spec(4)
    result, ops = play_in_memory(sim_player(TARGET), spec)
    assert result.verdict <= Verdict.PERMITTED, result.sentences
    ended = [(each.text, op.time_ns) for op, each in events_of(ops, StepEvent) if op.type is OpType.OK]
    assert 3 <= sum(text == "settle" for text, _ in ended)
    assert 15e9 < ended[-1][1] < 18e9, "the time of the run, and its last step"
    assert [OpType.OK] == [op.type for op, _ in events_of(ops, Healed)]
    again, same = play_in_memory(sim_player(TARGET), spec)
    assert (result.verdict, ops) == (again.verdict, same)


def test_cluster_that_does_not_become_whole_ends_the_schedule_as_a_hang() -> None:
    spec = runs("kill", seconds=60.0, protocol="kip380").spec(1)
    # No node comes back from a kill within no time: the first round that kills one never ends whole.
    settings = replace(spec.scenario.settings, heal_within_s=0.001)
    spec = replace(spec, scenario=replace(spec.scenario, settings=settings))
    result, ops = play_in_memory(sim_player(TARGET), spec)
    assert Verdict.HANG is result.verdict
    failed = [each.text for op, each in events_of(ops, StepEvent) if op.type is not OpType.INVOKE and each.error]
    assert "settle" == failed[-1]
    assert 1 == failed.count("settle")


DAMAGED = """\
title    A leader keeps a damaged batch that a follower needs
source   chance
nodes    A B C replicas, D controller
records  m1 2, m2 1, m3 1, last1 1, last2 1, last3 1, last4 1
settings segment_bytes=150
produce m1 acks=all
produce m2 acks=all
produce m3 acks=all
pass 200ms
stop C
pass 200ms
expire C
pass 200ms
lose-disk C
bit-rot-closed A
restart C
settle
"""


def test_round_ends_whole_under_another_leader_where_a_damaged_one_keeps_a_follower_behind(tmp_path: Path) -> None:
    (tmp_path / "damaged.txt").write_text(DAMAGED, encoding="utf-8")
    spec = replace(runs("all", seconds=16.0), seconds=None, schedule=tmp_path / "damaged.txt").spec(1)
    result, ops = play_in_memory(sim_player(TARGET), spec)
    assert Verdict.VALID is result.verdict, result.sentences
    assert ["A"] == [op.process for op, each in events_of(ops, Corrupt) if each.role == "leader"]
    elected = [op for op, each in events_of(ops, Injection) if each.name == "elect" and op.type is OpType.OK]
    assert 1 == len(elected)
    assert ["A"] == [op.process for op, _ in events_of(ops, Repaired)]


@pytest.mark.slow
def test_old_protocol_loses_what_it_promised() -> None:
    found = [
        play_in_memory(sim_player(TARGET), runs("power-loss", "elect", seconds=20.0, protocol="hw").spec(seed))[0]
        for seed in range(3)
    ]
    assert Verdict.INVALID in {result.verdict for result in found}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_what_a_slow_disk_holds_up_is_no_violation_of_a_time(seed: int) -> None:
    result, _ = play_in_memory(
        sim_player(TARGET), runs("disk-slow", "elect", seconds=4.0, workload="tail").spec(seed)
    )
    assert result.verdict <= Verdict.PERMITTED, result.sentences


def test_system_without_a_controller_and_with_one_partition_has_neither_in_its_chaos() -> None:
    kinds = kinds_of(("all",), NEMESES)
    scenario = draw_chaos(
        3, NEMESES, kinds, 60.0, timing=VIRTUAL, clients=NO_CLIENTS, controller=False, partitions=False
    )
    assert (("A", "B", "C"), {}, False) == (scenario.nodes, scenario.further, scenario.names_controller)
    text = text_of(scenario)
    assert "nodes    A B C replicas\n" in text
    assert not any(each in text for each in (" controller", "D"))
    assert replace(scenario, sources=("chance",)) == parse(scenario.name, text, "a file", NEMESES)


def of_its_own(seed: int, election_s: float, own: tuple[str, ...], seconds: float = 400.0) -> list[Act]:
    kinds = kinds_of(("all",), NEMESES)
    drawn = draw_chaos(
        seed, NEMESES, kinds, seconds, timing=REAL, clients=NO_CLIENTS, election_s=election_s, own=own
    )
    return [step.act for step in drawn.steps]


def test_quorum_s_own_messages_take_the_place_of_words_that_mean_none() -> None:
    acts = of_its_own(3, 0.0, ("Vote", "MetaVote"))
    held = [act for act in acts if isinstance(act, Hold | Delay)]
    assert {"fetch", "Vote", "MetaVote"} == {act.api for act in held}
    # Nothing else is another.
    kept = [act for act in of_its_own(3, 0.0, ()) if not isinstance(act, Hold | Delay)]
    assert kept == [act for act in acts if not isinstance(act, Hold | Delay)]


def test_some_waits_are_as_long_as_an_election_of_a_system_that_says_how_long_it_takes() -> None:
    waits_s = [float(act.ms) / 1000 * REAL.tempo for act in of_its_own(3, 20.0, ()) if isinstance(act, Pass)]
    long = [wait for wait in waits_s if wait > 2.5]
    assert 0.1 * len(waits_s) < len(long) < 0.35 * len(waits_s)
    assert all(5.0 <= wait <= 12.0 for wait in long)
    assert not any(
        float(act.ms) / 1000 * REAL.tempo > 2.5 for act in of_its_own(3, 0.0, ()) if isinstance(act, Pass)
    )
