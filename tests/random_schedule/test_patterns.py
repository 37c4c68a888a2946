"""A story's steps are those of schedules, and each breaks the rule that it is about."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from harness.model import ORACLES
from harness.random_schedule.patterns import STORIES, Wish
from harness.scenario.file import Scenario, draw, parse
from harness.search.random_runs import SIM, RandomRuns
from harness.search.simulated import sim_player, simulate
from nemesis import NEMESES

ROLES = ("A", "B", "C")
GRANTED = {Wish.PASS: "pass 30ms", Wish.PASS_FETCH: "pass 80ms", Wish.RELEASE_ONE: "release all"}
HEAD = """title a story
source chance
nodes A B C replicas, D controller
records {records}
settings min_isr=1 heal_within_s=10
"""


def schedule_of(story: str, seed: int) -> Scenario:
    """Return a story as a schedule of its own, with enough time to heal."""
    steps, records = ["produce m1 acks=all meanwhile", "pass 30ms"], ["m1 2"]
    for step in STORIES[story](Random(seed), ROLES):
        if step in (Wish.PRODUCE_ALL, Wish.PRODUCE_ONE):
            records.append(f"m{len(records) + 1} 1")
            steps.append(f"produce m{len(records)} acks={'all' if step is Wish.PRODUCE_ALL else 1} meanwhile")
        else:
            steps.append(GRANTED[step] if isinstance(step, Wish) else str(step))
    head = HEAD.format(records=", ".join([*records, *(f"last{n} 1" for n in range(1, 5))]))
    return parse(story, "\n".join([head, *steps]), story, NEMESES)


@pytest.mark.parametrize("story", STORIES)
def test_story_ends_what_it_has_begun_but_for_holds(story: str) -> None:
    for seed in range(50):
        steps = [str(step.act).split() for step in schedule_of(story, seed).steps]
        verbs = [words[0] for words in steps]
        gone = sum(len(words) - 1 for words in steps if words[0] in ("kill", "power-loss"))
        assert verbs.count("zombie") == verbs.count("return")
        assert gone == verbs.count("restart")


@pytest.mark.parametrize(("story", "change"), [
    ("flip", "fence_fetch=no"),
    ("flip", "fence_high_watermark=no"),
    ("flip", "fence_isr_join=no"),
    ("flip", "truncate_when_leader_unchanged=no"),
    ("flip", "forget_follower_ends=no"),
    ("laggard", "join_isr_past_epoch_start=no"),
    ("recall", "drop_stale_answer=no"),
])  # fmt: skip
def test_story_shows_what_a_rule_is_for_and_nothing_where_it_is_on(story: str, change: str) -> None:
    off, on = (
        RandomRuns(target="broker", variant=variant, host=SIM) for variant in (f"kip380+{change}", "kip380")
    )
    seeds = range(60)
    found = next((seed for seed in seeds if _violates(off, story, seed)), None)
    assert found is not None, f"{story} does not show {change} within {len(seeds)} schedules of it"
    assert not _violates(on, story, found)


def _violates(runs: RandomRuns, story: str, seed: int) -> bool:
    """Return True if an oracle sees a violation in this schedule of the story."""
    scenario = schedule_of(story, seed)
    spec = replace(runs.spec(seed), scenario=scenario, draw=draw(scenario, seed))
    result = simulate(sim_player(runs.load_target()), spec)
    return any(anomaly.kind in ORACLES for anomaly in result.anomalies)
