"""A pattern's steps are steps of schedules, and each pattern shows a violation only while its rule is off."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from harness.model import ORACLES
from harness.random_schedule.patterns import PATTERNS, WIDE_PATTERNS, Wish
from harness.scenario.file import Scenario, draw, parse
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES

ROLES = ("A", "B", "C")
ALL = PATTERNS | WIDE_PATTERNS
GRANTED = {
    Wish.PASS: "pass 30ms",
    Wish.PASS_FETCH: "pass 80ms",
    Wish.RELEASE_ONE: "release all",
    Wish.NEW_CONTROLLER: "depose-controller D",
}
HEAD = """title a pattern
source chance
nodes A B C replicas, D controller
records {records}
settings min_isr=1 heal_within_s=10
"""


def schedule_of(pattern: str, seed: int) -> Scenario:
    """Return a pattern as a schedule, with enough time to heal."""
    steps, records = ["produce m1 acks=all meanwhile", "pass 30ms"], ["m1 2"]
    for step in ALL[pattern](Random(seed), ROLES):
        if step in (Wish.PRODUCE_ALL, Wish.PRODUCE_ONE):
            records.append(f"m{len(records) + 1} 1")
            steps.append(f"produce m{len(records)} acks={'all' if step is Wish.PRODUCE_ALL else 1} meanwhile")
        else:
            steps.append(GRANTED[step] if isinstance(step, Wish) else str(step))
    head = HEAD.format(records=", ".join([*records, *(f"last{n} 1" for n in range(1, 5))]))
    return parse(pattern, "\n".join([head, *steps]), pattern, NEMESES)


@pytest.mark.parametrize("pattern", ALL)
def test_pattern_ends_what_it_has_begun_except_holds(pattern: str) -> None:
    for seed in range(50):
        steps = [str(step.act).split() for step in schedule_of(pattern, seed).steps]
        verbs = [words[0] for words in steps]
        gone = sum(len(words) - 1 for words in steps if words[0] in ("kill", "power-loss"))
        assert verbs.count("zombie") == verbs.count("return")
        assert gone == verbs.count("restart")


@pytest.mark.parametrize(("pattern", "change"), [
    ("flip", "fence_fetch=no"),
    ("flip", "fence_high_watermark=no"),
    ("flip", "fence_isr_join=no"),
    ("flip", "truncate_when_leader_unchanged=no"),
    ("flip", "forget_follower_ends=no"),
    ("laggard", "join_isr_past_epoch_start=no"),
    ("recall", "drop_stale_answer=no"),
])  # fmt: skip
def test_pattern_violates_only_while_its_rule_is_off(pattern: str, change: str) -> None:
    off, on = (
        RandomRuns(target="broker", variant=variant, host=SIM) for variant in (f"kip380+{change}", "kip380")
    )
    seeds = range(60)
    found = next((seed for seed in seeds if _violates(off, pattern, seed)), None)
    assert found is not None, f"{pattern} does not show {change} within {len(seeds)} schedules of it"
    assert not _violates(on, pattern, found)


def _violates(runs: RandomRuns, pattern: str, seed: int) -> bool:
    """Return True if an oracle sees a violation in this schedule of the pattern."""
    scenario = schedule_of(pattern, seed)
    spec = replace(runs.spec(seed), scenario=scenario, draw=draw(scenario, seed))
    result = simulate(sim_player(runs.load_target()), spec)
    return any(anomaly.kind in ORACLES for anomaly in result.anomalies)
