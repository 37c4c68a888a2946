"""Schedules of chosen nemeses have no other faults; the default schedules of the simulator's seeds stay."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from harness.model import UsageError
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.patterns import PATTERNS
from harness.random_schedule.profile import (
    ALL,
    ALWAYS,
    DEFAULT,
    NAMED_MOVES,
    NEMESES,
    REAL,
    WEIGHTS,
    Profile,
    of_quorum,
    profile_of,
)
from harness.random_schedule.width import NARROW, is_wide
from harness.scenario.file import Step
from harness.scenario.steps import Act, Delay, Double, Hold, Inject, Pass, Produce
from harness.scenario.text import text_of
from harness.workload.plan import ACKS_ALL
from tests.faults import NEMESES as FAULTS

# Steps of every schedule: those that heal, what clients do, and passing time.
HARMLESS = {"produce", "pass", "release", "return", "restart", "resume", "heal"}


def verbs(names: tuple[str, ...], seeds: range) -> set[str]:
    drawn = (draw_schedule(seed, FAULTS, profile_of(names)) for seed in seeds)
    return {step.text.split()[0] for schedule in drawn for step in schedule.steps}


def test_all_is_every_schedule_as_it_was() -> None:
    assert profile_of([ALL]) is DEFAULT
    assert profile_of(["kill", ALL], REAL) is REAL


def test_moves_of_an_operator_come_when_they_are_named_beside_all_others_too() -> None:
    """Other schedules have none: a weight of theirs would shift what every seed draws."""
    assert not set(WEIGHTS) & {"move-away", "move-back"}
    both = {step.text.split()[0] for step in _steps(profile_of([ALL, "move-away"], REAL))}
    assert {"move-away", "move-back", "kill", "elect"} <= both


def _steps(profile: Profile) -> list[Step]:
    return [step for seed in range(30) for step in draw_schedule(seed, FAULTS, profile).steps]


def test_seeds_of_the_simulator_draw_what_they_drew() -> None:
    """The figures of docs/search.md are of these schedules: if the schedules change, measure again."""
    narrow = replace(DEFAULT, breadth=NARROW)
    texts = "".join(text_of(draw_schedule(seed, FAULTS, narrow)) for seed in range(500))
    assert "c12e7d696a16073fd9021f68afd5b456" == hashlib.md5(texts.encode()).hexdigest()


def test_steps_of_a_run_of_one_partition_are_those_of_a_narrow_one() -> None:
    """Further partitions and clients have a random source of their own."""
    narrow = replace(DEFAULT, breadth=NARROW)
    wide = 0
    for seed in range(200):
        drawn = draw_schedule(seed, FAULTS)
        wide += is_wide(seed, DEFAULT.breadth)
        if not is_wide(seed, DEFAULT.breadth):
            assert [s.act for s in draw_schedule(seed, FAULTS, narrow).steps] == [s.act for s in drawn.steps]
    assert 70 < wide < 130


@pytest.mark.parametrize("name", [name for name in NEMESES if name not in (ALL, "hold", "pattern")])
def test_chosen_nemesis_comes_alone(name: str) -> None:
    verb = name.partition("-")[0] if name.startswith("hold-") else name
    assert {verb} == verbs((name,), range(60)) - HARMLESS - {"move-back"}


def test_several_nemeses_come_together() -> None:
    assert {"kill", "hold"} == verbs(("kill", "hold"), range(60)) - HARMLESS


def test_every_move_that_breaks_something_can_be_chosen() -> None:
    chosen = {kind for name, kinds in NEMESES.items() if name != ALL for kind in kinds}
    assert set(WEIGHTS) - HARMLESS | NAMED_MOVES == chosen
    assert {"elect"} == ALWAYS - HARMLESS


def test_old_name_of_a_nemesis_means_the_same() -> None:
    """The old name is accepted for one release."""
    assert profile_of(["depose-controller", "kill"]) == profile_of(["resign", "kill"]) != profile_of(["kill"])
    assert profile_of(["pattern", "kill"]) == profile_of(["story", "kill"]) != profile_of(["kill"])


def test_nemesis_that_is_none_is_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"unknown nemesis 'kil'.*Did you mean 'kill'"):
        profile_of(["kil"])


def test_patterns_of_profiles_exist() -> None:
    assert set(REAL.patterns) == set(PATTERNS)
    assert set(DEFAULT.patterns) < set(PATTERNS)


def acts_of_a_quorum(**others: Any) -> list[Act]:
    profile = replace(of_quorum(REAL, ("Vote", "MetaVote")), **others)
    return [step.act for seed in range(80) for step in draw_schedule(seed, FAULTS, profile).steps]


def test_quorum_has_its_own_messages_held_in_place_of_commands_and_questions() -> None:
    """No member is told who leads, and none asks where an epoch ends."""
    held = [
        act for act in acts_of_a_quorum(pattern_first=0.0, patterns=("fork",)) if isinstance(act, Hold | Delay)
    ]
    assert {"fetch", "Vote", "MetaVote"} == {act.api for act in held}
    assert {("Vote", "requests"), ("Vote", "answers")} <= {(act.api, act.direction) for act in held}


def test_quorum_has_no_move_that_is_about_memberships_or_numbered_requests() -> None:
    acts = acts_of_a_quorum(pattern_first=0.0, patterns=("relapse",))
    assert not any(isinstance(act, Double) for act in acts)
    assert not {"zombie", "return", "expire"} & {act.fault for act in acts if isinstance(act, Inject)}


def test_quorum_has_passes_as_long_as_an_election_by_a_timeout() -> None:
    assert any(isinstance(act, Pass) and act.ms > 2000 for act in acts_of_a_quorum())
    assert not any(
        isinstance(step.act, Pass) and step.act.ms > 2000
        for seed in range(80)
        for step in draw_schedule(seed, FAULTS, REAL).steps
    )


def test_patterns_of_a_system_that_waits_for_all_acks_have_no_other_records() -> None:
    produced = [act for act in acts_of_a_quorum(acks_all=1.0) if isinstance(act, Produce)]
    assert {ACKS_ALL} == {act.acks for act in produced}


def test_quorum_has_two_members_at_least() -> None:
    profile = of_quorum(replace(REAL, lone=1.0), ("Vote",))
    assert {2, 3} == {len(draw_schedule(seed, FAULTS, profile).replicas) for seed in range(50)}
