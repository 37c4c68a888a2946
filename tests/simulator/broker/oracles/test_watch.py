"""Every partition of a world is watched, each by its own rules, and steps that change nothing cost little."""

from __future__ import annotations

from functools import partial

import pytest

from harness.model import ORACLES, Kind, Verdict
from harness.run.result import RunResult
from harness.search.random_runs import RandomRuns
from harness.search.simulated import sim_player, simulate
from targets import VIRTUAL_HOST as SIM
from targets.broker.core import fetches
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Replica
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.clients.operations import CreateTopic, DeleteTopic
from targets.simulator.broker.oracles import Oracles, Rule
from targets.simulator.broker.oracles.partition import PartitionOracle
from targets.simulator.broker.world import World
from tests.kept import keep
from tests.simulator.broker import test_topics
from tests.simulator.broker.oracles.many import spec_of_many
from tests.simulator.broker.oracles.planted import acknowledged, fetch, patch, post, tamper
from tests.simulator.worlds import TP, WAIT_S, boot, cluster, leads

SIDE = TopicPartition("side", 0)


def two() -> tuple[World, Oracles]:
    """Return a world of two partitions, led by A and by B, with a record in each."""
    world = cluster("kip380", replicas=("A", "B", "C"))
    client = SimClient(world)
    client.create_topic("side", [world.ids["B"], world.ids["C"]])
    assert world.until(lambda: leads(world, "B", SIDE), WAIT_S)
    oracles = Oracles(world, [TP, SIDE])
    client.produce(TP.topic, 0, "m1", ["m1.0"], acks=-1)
    client.produce("side", 0, "s1", ["s1.0"], acks=-1)
    world.run(0.5)
    assert {} == oracles.violations
    return world, oracles


def test_violation_names_the_partition_in_which_it_was_seen() -> None:
    world, oracles = two()
    log = world.nodes["C"].disk.logs[SIDE]
    log.truncate_to(0, world.rules.leo_after_cut)
    world.run(0.2)
    assert {SIDE} == {tp for _, tp in oracles.violations}
    event = oracles.violations[Rule.COMMITTED, SIDE].event()
    assert ("committed", "side", 0, ("C",), 0) == (
        event.rule,
        event.topic,
        event.partition,
        event.nodes,
        event.offset,
    )


def test_first_violation_of_a_rule_is_kept_for_each_partition() -> None:
    world, oracles = two()
    for tp in (SIDE, TP):
        world.nodes["C"].disk.logs[tp].truncate_to(0, world.rules.leo_after_cut)
    world.run(0.2)
    assert {TP, SIDE} == {tp for rule, tp in oracles.violations if rule is Rule.COMMITTED}


def test_acknowledgement_is_judged_by_its_own_partition() -> None:
    _, oracles = two()
    oracles.listen(acknowledged(0, "s1.0", topic="side"))
    oracles.listen(acknowledged(0, "s1.0", topic="unwatched"))
    assert {} == oracles.violations
    oracles.listen(acknowledged(0, "m1.0", topic="side"))
    assert [(Rule.ACKNOWLEDGED, SIDE)] == list(oracles.violations)


def test_violation_in_one_partition_says_nothing_of_another() -> None:
    world, oracles = two()
    tamper(world, "C", "stray")
    world.run(0.2)
    assert {TP} == {tp for _, tp in oracles.violations}


def test_step_is_shown_only_to_partitions_that_it_may_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = two()
    shown: list[TopicPartition] = []
    monkeypatch.setattr(PartitionOracle, "on_step", lambda self, *_, **__: shown.append(self.tp))
    SimClient(world).produce("side", 0, "s2", ["s2.0"], acks=-1)
    assert {SIDE} == set(shown)
    shown.clear()
    world.run(5.0)
    post(world, "A", fetch(0))
    assert {SIDE} >= set(shown), "partitions in which nothing happens are not looked at"


# --- runs ------------------------------------------------------------------------------------------------------
def play(seed: int, *, partitions: int = 4) -> RunResult:
    player = sim_player(RandomRuns(target="broker", variant="kip380", host=SIM).load_target())
    return simulate(player, spec_of_many(seed, partitions=partitions))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", keep([4, 8], 8))
def test_oracles_are_silent_while_clients_of_many_partitions_work(partitions: int) -> None:
    for seed in range(6):
        result = play(seed, partitions=partitions)
        assert not [anomaly for anomaly in result.anomalies if anomaly.kind in ORACLES]
        assert result.verdict in (Verdict.VALID, Verdict.PERMITTED) or result.vacuous


@pytest.mark.slow
def test_consumers_of_a_run_are_watched_in_every_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(_original: object, replica: Replica, _request: object) -> int:
        return replica.log.end_offset

    patch(monkeypatch, fetches, "_limit", ends)
    found = [each for seed in range(6) for each in play(seed).anomalies if each.kind is Kind.ORACLE_SERVED]
    assert {"log", "side", "t"} == {anomaly.topic for anomaly in found}


# --- topics that are deleted and created again -----------------------------------------------------------------
@pytest.mark.slow
def test_topic_that_is_created_again_is_watched_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: KIP-516. Where topics have ids, what is left of the old one is no replica of the new one."""
    found: list[Oracles] = []

    def boot_and_watch(world: World) -> None:
        boot(world)
        found.append(Oracles(world, [TP]))

    monkeypatch.setattr(test_topics, "boot", boot_and_watch)
    for seed in range(30):
        assert [] == test_topics.Story(seed, "kip380").play()
        assert {} == found[-1].violations


def test_violation_in_a_topic_that_was_created_again_is_named() -> None:
    world, oracles = two()
    for perform in (partial(DeleteTopic, topic="side"), partial(CreateTopic, topic="side", assignments=[[2, 3]])):
        test_topics.perform(world, perform)
    assert world.until(lambda: leads(world, "B", SIDE), WAIT_S)
    SimClient(world).produce("side", 0, "s2", ["s2.0"], acks=-1)
    world.run(0.5)
    oracles.listen(acknowledged(0, "s1.0", topic="side"))
    assert {} == oracles.violations, "s1.0 was acknowledged in the topic before"
    world.nodes["C"].disk.logs[SIDE].truncate_to(0, world.rules.leo_after_cut)
    world.run(0.2)
    assert "s2.0 was committed at offset 0 and is not on C" in oracles.violations[Rule.COMMITTED, SIDE].sentence
