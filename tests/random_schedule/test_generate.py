"""A random schedule follows from its seed alone, and is a scenario like any other."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from harness.random_schedule import generate as draw
from harness.random_schedule.final_records import FINAL_RECORDS
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import DEFAULT, WEIGHTS
from harness.scenario.file import parse
from harness.scenario.text import text_of
from tests.faults import NEMESES

SEEDS = range(300)


def test_schedule_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    assert draw_schedule(7, NEMESES) == draw_schedule(7, NEMESES)
    assert len(SEEDS) == len({draw_schedule(seed, NEMESES).steps for seed in SEEDS})


def test_schedule_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "from harness.random_schedule.generate import draw_schedule; from tests.faults import NEMESES;"
        "from harness.scenario.text import text_of;"
        "print([text_of(draw_schedule(seed, NEMESES)) for seed in range(20)])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, check=True
        )
        for hash_seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert b"elect" in runs[0].stdout


@pytest.mark.parametrize("seed", range(40))
def test_schedule_reads_back_from_its_text(seed: int) -> None:
    drawn = draw_schedule(seed, NEMESES)
    assert drawn.steps
    again = parse(drawn.name, text_of(drawn), "again", NEMESES)
    assert drawn == again


def test_steps_are_of_every_kind() -> None:
    words = Counter(str(step.act).split()[0] for seed in SEEDS for step in draw_schedule(seed, NEMESES).steps)
    drawn = {"produce", "pass", "elect", "hold", "release", "zombie", "return", "kill", "power-loss", "restart"}
    assert drawn | {
        "flush",
        "expire",
        "pause",
        "resume",
        "depose-controller",
        "cut",
        "heal",
        "delay",
        "double",
    } <= set(words)


def test_every_schedule_begins_with_a_record_and_counts_all_that_it_sends() -> None:
    for seed in SEEDS:
        drawn = draw_schedule(seed, NEMESES)
        assert "produce m1 acks=all" == " ".join(str(drawn.steps[0].act).split()[:3])
        sent = [str(step.act).split()[1] for step in drawn.steps if str(step.act).split()[0] == "produce"]
        assert [*sent, *FINAL_RECORDS] == [count.name for count in drawn.records]


def test_topologies_differ() -> None:
    drawn = [draw_schedule(seed, NEMESES) for seed in SEEDS]
    assert {1, 2, 3} == {len(each.replicas) for each in drawn}
    assert {True, False} == {each.nodes[0] in each.replicas for each in drawn}
    assert {1, 2, 3} == {each.settings.min_isr for each in drawn}
    assert len({each.settings.replica_lag_ms_max for each in drawn}) > 2
    assert not any(each.settings.unclean_election for each in drawn if not each.further)


def test_tempers_differ_so_that_most_schedules_lack_some_kind_of_move() -> None:
    kinds = [{str(step.act).split()[0] for step in draw_schedule(seed, NEMESES).steps} for seed in SEEDS]
    without = sum("power-loss" not in each for each in kinds)
    assert len(SEEDS) * 0.4 < without < len(SEEDS)


def test_every_weight_belongs_to_a_move_and_every_fault_has_one() -> None:
    moves = set(draw._Drawing(1, NEMESES, DEFAULT)._moves)
    assert {*WEIGHTS, *NEMESES, *draw.LATE, draw.ELECT_ELSEWHERE} == moves
