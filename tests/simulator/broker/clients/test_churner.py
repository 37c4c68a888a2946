"""A churner's topic in random runs: it comes and goes, is read at the end, and judged by a rule of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from checkers import CHECKERS
from checkers.checker import Scope, check, of_run, partitions
from harness.events import CreateTopic, DeleteTopic, OracleViolation
from harness.model import Kind, Op, OpType, Source, Verdict, events_of
from harness.random_schedule import generate
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import DEFAULT
from harness.random_schedule.stops import DEPOSE
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.scenario.file import draw, parse
from harness.scenario.text import text_of
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from targets import VIRTUAL_HOST as SIM
from targets.broker.core.messages import TopicPartition
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.oracles.generations import GenerationOracle
from targets.simulator.broker.world import World
from tests.faults import NEMESES
from tests.kept import exhaustive
from tests.simulator.worlds import IDS, boot

HEAD = """title A topic is deleted and created again
source chance
nodes A B C replicas, C controller
records m1 2, last1 1, last2 1, last3 1, last4 1
settings min_isr=1 heal_within_s=3
churner n1 temp A B replication=2 partitions=2 every_ms=2..15

produce m1 acks=all meanwhile
pass 20ms
"""
CHAOS = "kill B\npass 30ms\nrestart B\npass 60ms\nzombie A\npass 60ms\nreturn A\npass 60ms\n"
TEMP = TopicPartition("temp", 0)


def play(seed: int, steps: str = CHAOS, variant: str = "kip380") -> tuple[RunResult, Sequence[Op]]:
    """Play a seed's world with these steps and a churner."""
    runs = RandomRuns(target="broker", variant=variant, host=SIM)
    scenario = parse("T", HEAD + steps, "T", NEMESES)
    spec: RunSpec = replace(runs.spec(seed), scenario=scenario, draw=draw(scenario, seed))
    result, ops, *_ = play_in_memory(sim_player(runs.load_target()), spec)
    return result, ops


@pytest.mark.slow
def test_topics_come_and_go_while_faults_are_in_force_and_nothing_old_is_found_in_new_ones() -> None:
    outcomes: Counter[tuple[str, OpType]] = Counter()
    for seed in range(40):
        result, ops = play(seed)
        # Where m1's only try times out, nothing is acknowledged, and the run proves nothing of its log.
        assert {each.kind for each in result.anomalies} <= {Kind.VACUOUS}, (seed, result.sentences)
        outcomes.update((op.f, op.type) for op, _ in (*events_of(ops, CreateTopic), *events_of(ops, DeleteTopic)))
    for f in ("create-topic", "delete-topic"):
        assert outcomes[f, OpType.INVOKE] == sum(outcomes[f, end] for end in OpType if end is not OpType.INVOKE)
        assert min(outcomes[f, OpType.OK], outcomes[f, OpType.FAIL]) > 12


@exhaustive
def test_zombie_that_missed_a_deletion_is_told_when_it_returns() -> None:
    """Of the seeds whose topic was deleted while A was away, none leaves a log with A."""
    wrong = {seed: found for seed in range(30) if (found := play(seed, "zombie A\npass 200ms\n")[0].sentences)}
    assert {} == wrong


def test_churned_partitions_are_judged_by_their_own_rule_and_no_other() -> None:
    _, ops = play(1)
    parts = partitions(ops)
    assert {("log", 0), ("temp", 0), ("temp", 1)} == parts.keys()
    judging = {key: {name for name, each in CHECKERS.items() if each.judges(part)} for key, part in parts.items()}
    churned = {name for name, each in CHECKERS.items() if each.scope is not Scope.LASTING}
    # A run proves nothing only if none of its partitions proves anything: each is asked.
    assert {"generations", "whole", "oracles", "vacuous"} == churned
    assert churned == judging["temp", 0] == judging["temp", 1]
    assert CHECKERS.keys() - {"generations"} == judging["log", 0]


def _is_read(op: Op) -> bool:
    return op.source is Source.LOG and op.f == "snapshot" and op.place == ("temp", 0)


def test_op_of_a_churned_topic_that_cannot_be_read_makes_the_run_unknown() -> None:
    ops, at = next((ops, op.index) for seed in range(9) for ops in [play(seed)[1]] for op in ops if _is_read(op))
    damaged = [replace(op, value={**op.value, "odd": 1}) if op.index == at else op for op in ops]
    found = of_run(check(part, CHECKERS) for part in partitions(damaged).values())
    assert {Kind.UNCHECKED} == {anomaly.kind for anomaly in found}
    assert any(anomaly.topic == "temp" for anomaly in found)


def test_client_that_cannot_churn_says_so_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimClient, "churns", False)
    started: list[str] = []
    monkeypatch.setattr("targets.simulator.broker.node.Node.boot", lambda node: started.append(node.name))
    result, _ = play(1)
    assert (Verdict.UNKNOWN, []) == (result.verdict, started)
    assert "churner n1: not by this client; expected the client raw" in " ".join(result.sentences)


def test_seed_with_a_churner_has_the_steps_of_the_seed_without_one_and_others_about_stop_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A seed with a churner has no upgrade, which the seed without one may have."""
    monkeypatch.setattr(generate, "has_upgrades", lambda _seed: False)
    none = replace(DEFAULT, breadth=replace(DEFAULT.breadth, churners=0.0))
    drawn = [draw_schedule(seed, NEMESES) for seed in range(200)]
    churning = [(seed, each) for seed, each in enumerate(drawn) if each.clients.churners]
    assert 20 < len(churning) < 60
    held = 0
    for seed, schedule in churning:
        without = draw_schedule(seed, NEMESES, none)
        texts = [step.text for step in schedule.steps if "stop-command" not in step.text]
        held += len(schedule.steps) - len(texts)
        # The controller may be deposed while a request is held, which takes time.
        others = iter(texts)
        assert all(step.text in others for step in without.steps)
        more = Counter(texts) - Counter(step.text for step in without.steps)
        assert all(text.startswith((DEPOSE, "pass ")) for text in more)
        assert replace(schedule.clients, churners=()) == without.clients
        assert schedule == parse(schedule.name, text_of(schedule), "here", NEMESES)
    assert held > len(churning)


def test_oracle_sees_a_record_of_an_older_topic_in_a_newer_one() -> None:
    world = World(protocol="kip380", ids=IDS, session_timeout_ms=2_000)
    boot(world)
    client = SimClient(world)
    oracle = GenerationOracle(world, [TEMP])
    client.create_topic("temp", [IDS["A"], IDS["B"]])
    client.produce("temp", 0, "old", ["old.0"], acks=-1)
    world.run(0.1)
    assert {} == oracle.violations
    logs = world.nodes["B"].disk.logs
    logs[TEMP].topic_id += 1  # as if B had kept its predecessor's log
    client.produce("temp", 0, "new", ["new.0"], acks=1)
    world.run(0.1)
    seen = oracle.violations[TEMP]
    assert isinstance(seen, OracleViolation)
    assert ("generation", ("B",), 0, "temp", 0) == (seen.rule, seen.nodes, seen.offset, seen.topic, seen.partition)
    assert "B holds old.0 of the topic temp with id " in seen.sentence
