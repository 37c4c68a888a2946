"""
Partitions are moved while topics are deleted and created again and all other faults go on: what a user names with
`--workload topics --nemesis all,move-away` is one schedule for every target, is judged valid, and finds a bug.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import pytest

from checkers.judge import judge
from harness.model import Kind, Source, Verdict
from harness.run.result import RunResult
from harness.scenario.text import text_of
from harness.search.pairing import seen_of_any
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from targets.broker.core import reassignment
from targets.broker.core.assignments import Move
from targets.broker.core.zookeeper import PartitionState

# A seed whose run is a finding if topics have no identity, and one if a move does not wait for the ISR.
WITHOUT_IDENTITY: Final = 27
NOT_IN_SYNC: Final = 4


def runs_on(target: str, variant: str, host: str, *changes: str) -> RandomRuns:
    return RandomRuns(
        target=target,
        variant=variant,
        host=host,
        changes=changes,
        nemeses=("all", "move-away"),
        workload="topics",
        alike=True,
    )


def play(seed: int, *changes: str) -> RunResult:
    runs = runs_on("broker", "kip380", SIM, *changes)
    return simulate(sim_player(runs.load_target()), runs.spec(seed))


def play_seen_of_any(seed: int) -> RunResult:
    """Judge a run by the events that Apache Kafka has too, as a comparison does."""
    runs = runs_on("broker", "kip380", SIM)
    ops = play_in_memory(sim_player(runs.load_target()), runs.spec(seed))[1]
    return judge(runs.spec(seed), seen_of_any(op for op in ops if op.source is not Source.SIMULATOR))


def kinds_of(result: RunResult) -> set[Kind]:
    return {anomaly.kind for anomaly in result.anomalies}


def test_one_seed_is_one_schedule_on_both_targets_and_the_next_time() -> None:
    for seed in range(10):
        theirs = runs_on("kafka", "3.9.1", "local").spec(seed).scenario
        ours = runs_on("broker", "kip380", "local").spec(seed).scenario
        assert text_of(theirs) == text_of(ours) == text_of(runs_on("kafka", "3.9.1", "local").spec(seed).scenario)
        assert ["temp", "spare"] == [churner.topic for churner in theirs.clients.churners]


def test_schedules_have_moves_beside_all_other_faults() -> None:
    drawn = (runs_on("kafka", "3.9.1", "local").spec(seed).scenario.steps for seed in range(50))
    words = {step.text.split()[0] for steps in drawn for step in steps}
    others = {"kill", "power-loss", "expire", "zombie", "pause", "elect", "depose-controller", "cut", "hold"}
    assert words >= {"move-away", "move-back", *others}


def test_partitions_move_and_topics_come_again_and_nothing_is_wrong() -> None:
    results = [play(seed) for seed in range(8)]
    assert [] == [result.sentences for result in results if result.is_finding]
    assert sum(result.verdict is Verdict.VALID for result in results) > 4
    assert sum(result.activity.replicas_moved for result in results) > 4
    assert sum(result.activity.recreated for result in results) > 4


@pytest.mark.slow
def test_bug_of_topics_without_an_identity_is_found() -> None:
    assert Verdict.VALID is play(WITHOUT_IDENTITY).verdict
    assert Kind.STUCK in kinds_of(play(WITHOUT_IDENTITY, "topic_identity=no"))


def test_move_that_does_not_wait_for_its_new_replicas_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """V3 F, 3.2: "this means that all replicas have caught up"."""
    right = reassignment.next_step

    def early(
        move: Move, replicas: tuple[int, ...], state: PartitionState, live: Collection[int], *, may_begin: bool
    ) -> reassignment.Step | None:
        believed = (*state.isr, *(broker for broker in move.target if broker in live and broker not in state.isr))
        begun = reassignment.is_begun(move, replicas)
        return right(move, replicas, replace(state, isr=believed) if begun else state, live, may_begin=may_begin)

    assert not play_seen_of_any(NOT_IN_SYNC).is_finding
    monkeypatch.setattr(reassignment, "next_step", early)
    found = play_seen_of_any(NOT_IN_SYNC)
    assert {Kind.WRONG_ISR, Kind.NOT_REPLICATED} <= kinds_of(found)
    assert Verdict.INVALID is found.verdict
    assert found.activity.replicas_moved > 0
