"""Schedules of the older message format disturb one thing at a time, and lose nothing that is promised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.older_format import QUIET, has_older_format, older_format_schedule
from harness.random_schedule.profile import DEFAULT, REAL, profile_of
from harness.random_schedule.width import NARROW, is_wide
from harness.scenario.file import draw, parse
from harness.scenario.steps import ChangeFormat, Hold, Inject, Pass, Release
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from harness.target.settings import MessageFormat
from targets import VIRTUAL_HOST as SIM
from targets.simulator.broker.random_world import random_formats
from tests.faults import NEMESES
from tests.kept import exhaustive

SEEDS = range(40)


def test_some_of_the_wide_schedules_of_a_simulator_are_of_the_older_format() -> None:
    older = [seed for seed in range(400) if has_older_format(seed, NEMESES, DEFAULT)]
    assert 10 < len(older) < 40
    assert all(is_wide(seed, DEFAULT.breadth) for seed in older)
    for seed in older:
        assert older_format_schedule(seed) == draw_schedule(seed, NEMESES)
    for profile in (REAL, replace(DEFAULT, breadth=NARROW), profile_of(["kill"])):
        assert not any(has_older_format(seed, NEMESES, profile) for seed in range(400))


def test_workload_whose_clients_are_never_quiet_has_none_of_them() -> None:
    plain = RandomRuns(target="broker", variant="kip380", host=SIM)
    older = [seed for seed in range(400) if has_older_format(seed, NEMESES, DEFAULT)][:3]
    for runs, counts in ((plain, 3), (replace(plain, workload="append"), 0)):
        formats = [runs.spec(seed).scenario.settings.message_format for seed in older]
        assert counts == formats.count(MessageFormat.WITHOUT_EPOCHS)


def test_schedule_reads_back_from_its_text() -> None:
    for seed in SEEDS:
        drawn = older_format_schedule(seed)
        assert drawn == parse(drawn.name, text_of(drawn), "again", NEMESES)
        assert drawn.settings.message_format is MessageFormat.WITHOUT_EPOCHS


def test_schedule_undoes_what_it_does() -> None:
    for seed in SEEDS:
        acts = [step.act for step in older_format_schedule(seed).steps]
        held = [(act.api, act.src, act.dst) for act in acts if isinstance(act, Hold)]
        released = [(act.api, act.src, act.dst) for act in acts if isinstance(act, Release)]
        assert sorted(held) == sorted(released)
        faults = [act for act in acts if isinstance(act, Inject)]
        gone = [name for act in faults if act.fault in ("kill", "power-loss") for name in act.nodes]
        assert sorted(gone) == sorted(act.nodes[0] for act in faults if act.fault == "restart")


def test_nothing_is_disturbed_before_all_followers_know_the_high_watermark() -> None:
    for seed in SEEDS:
        acts = [step.act for step in older_format_schedule(seed).steps]
        for at, act in enumerate(acts):
            if isinstance(act, Inject) and act.fault in ("kill", "power-loss"):
                others = [each for each in acts[:at] if not isinstance(each, Inject) or each.fault != "flush"]
                passes = [each for each in others if isinstance(each, Pass)]
                assert passes[-1] == others[-1] == QUIET or act.fault == "kill"


def test_nodes_write_epochs_in_some_worlds_in_others_none_does() -> None:
    found = [{each["message_format"] for each in random_formats(seed, "ABCD").values()} for seed in SEEDS]
    assert {1} in found
    assert {1, 2} in found


def test_some_schedules_change_the_format_up_and_down_while_all_is_quiet() -> None:
    drawn = [[step.act for step in older_format_schedule(seed).steps] for seed in SEEDS]
    changing = [acts for acts in drawn if any(isinstance(act, ChangeFormat) for act in acts)]
    assert len(SEEDS) / 4 < len(changing) < 3 * len(SEEDS) / 4
    assert {1, 2} == {act.number for acts in changing for act in acts if isinstance(act, ChangeFormat)}
    for acts in changing:
        places = [at for at, act in enumerate(acts) if isinstance(act, ChangeFormat)]
        assert all(acts[at - 1] == acts[at + 1] == QUIET for at in places)


@exhaustive
@pytest.mark.parametrize("first", [0, 20])
def test_sound_brokers_lose_nothing_that_is_promised(first: int) -> None:
    runs = RandomRuns(target="broker", variant="kip380", host=SIM)
    player, out_of_range, without, taken = sim_player(runs.load_target()), 0, 0, 0
    for seed in range(first, first + 20):
        schedule = older_format_schedule(seed)
        result, ops = play_in_memory(
            player, replace(runs.spec(seed), scenario=schedule, draw=draw(schedule, seed))
        )
        assert not result.is_finding, (seed, result.sentences)
        reasons = [op.value["reason"] for op in ops if op.f == "truncate"]
        out_of_range += "out-of-range" in reasons
        without += "no-epoch-information" in reasons
        taken += any(op.f == "format" for op in ops)
    assert taken
    assert out_of_range
    assert without
