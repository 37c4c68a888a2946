"""Faults of machines are drawn in wide schedules alone, and leave all other steps of a seed as they are."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.hardware import BEFORE_LOSS, LOSE_DISK, WEIGHTS, with_hardware
from harness.random_schedule.profile import DEFAULT, REAL, profile_of
from harness.scenario.steps import Act, Inject, Pass
from tests.faults import NEMESES

SEEDS = range(240)
NODES = ("A", "B", "C")


def hardware_of(acts: list[Act]) -> list[Inject]:
    return [act for act in acts if isinstance(act, Inject) and act.fault in WEIGHTS]


def drawn(seed: int) -> list[Act]:
    return [step.act for step in draw_schedule(seed, NEMESES).steps]


def test_wide_schedules_have_each_fault_and_narrow_ones_none() -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        here = hardware_of(drawn(seed))
        assert not here or draw_schedule(seed, NEMESES).further, seed
        found.update(act.fault for act in here)
    assert set(WEIGHTS) == set(found)
    assert min(found.values()) > 5


def test_all_other_steps_of_a_seed_stay_as_they_are() -> None:
    steps: list[Act] = [Pass(number) for number in range(20)]  # type: ignore[arg-type]
    changed = 0
    for seed in SEEDS:
        found = with_hardware(seed, steps, NODES, NODES, NEMESES)
        assert found[0] == steps[0]
        assert steps == [act for act in found if isinstance(act, Pass)]
        changed += found != steps
    assert 50 < changed < len(SEEDS)


def test_one_disk_of_a_schedule_is_lost_at_most_and_its_node_is_taken_down_before() -> None:
    lost = 0
    for seed in SEEDS:
        acts = [act for act in drawn(seed) if isinstance(act, Inject)]
        places = [at for at, act in enumerate(acts) if act.fault == LOSE_DISK]
        assert len(places) <= 1
        for at in places:
            assert any(act.fault in BEFORE_LOSS and act.nodes == acts[at].nodes for act in acts[:at])
            lost += 1
    assert lost > 5


def test_same_seed_has_the_same_faults() -> None:
    assert [drawn(seed) for seed in range(20)] == [drawn(seed) for seed in range(20)]


@pytest.mark.parametrize("profile", [REAL, profile_of(["kill"], DEFAULT, NEMESES)], ids=["alike", "chosen"])
def test_schedules_that_every_target_plays_and_chosen_nemeses_have_none(profile: object) -> None:
    for seed in range(40):
        schedule = draw_schedule(seed, NEMESES, profile)  # type: ignore[arg-type]
        assert [] == hardware_of([step.act for step in schedule.steps])


def test_table_without_these_faults_draws_none() -> None:
    some = {name: fault for name, fault in NEMESES.items() if name not in WEIGHTS}
    assert [Pass(1)] * 3 == with_hardware(1, [Pass(1)] * 3, NODES, NODES, some)  # type: ignore[arg-type]
