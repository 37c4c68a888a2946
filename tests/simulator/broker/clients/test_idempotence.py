"""Idempotent producers in the simulator: a slow follower has them send again what the leader has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.events import Produce, Setup
from harness.model import Kind, Op, OpType, Verdict, events_of
from harness.run.result import RunResult
from harness.scenario.file import draw, parse
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from targets import VIRTUAL_HOST as SIM
from targets.broker.core import producers
from tests.faults import NEMESES

SCHEDULE = """title A follower is slow
source KIP-98
nodes A B replicas, C controller
records m1 1, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3 replica_lag_ms_max=2000
producer p1 log-0 every_ms=1..3 retries=8 idempotent=yes
pass 50ms
hold requests fetch B -> A
pass 250ms
release all
pass 100ms
{more}
"""


def played(variant: str = "kip380", more: str = "") -> tuple[RunResult, Sequence[Op]]:
    runs = RandomRuns(target="broker", variant=variant, host=SIM)
    scenario = parse("T", SCHEDULE.format(more=more), "T", NEMESES)
    spec = replace(runs.spec(1), scenario=scenario, draw=draw(scenario, 1))
    return play_in_memory(sim_player(runs.load_target()), spec)


def test_what_is_sent_again_is_there_once_and_the_history_names_the_producer() -> None:
    result, ops = played()
    assert Verdict.VALID is result.verdict, result.anomalies
    assert [("p1",)] == [setup.idempotent for _, setup in events_of(ops, Setup)]
    outcomes = [op.type for op, sent in events_of(ops, Produce) if sent.name == "p1"]
    assert outcomes.count(OpType.INVOKE) == outcomes.count(OpType.OK) > 5


def test_without_the_rule_it_is_there_twice() -> None:
    result, _ = played("kip380+idempotence=no")
    assert {Kind.DUPLICATE} == {anomaly.kind for anomaly in result.anomalies}


def test_protocol_without_producers_ids_has_a_producer_that_is_not_idempotent() -> None:
    result, ops = played("hw")
    assert Verdict.VALID is result.verdict, result.anomalies
    assert [None] == [setup.idempotent for _, setup in events_of(ops, Setup)]


def test_new_leader_that_knows_no_producer_appends_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: KIP-98: the state is in the log, so that a new leader has it."""
    known = producers.appended

    def as_leader(core, replica, batches, base=None) -> None:  # type: ignore[no-untyped-def]
        if base is not None:
            known(core, replica, batches, base)

    steps = "hold requests fetch B -> A\npass 20ms\nkill A\nexpire A\npass 100ms\nrestart A\npass 20ms"
    assert Verdict.VALID is played(more=steps)[0].verdict
    monkeypatch.setattr(producers, "appended", as_leader)
    assert Kind.DUPLICATE in {anomaly.kind for anomaly in played(more=steps)[0].anomalies}
