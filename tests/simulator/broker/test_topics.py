"""
Topics that are deleted and created again under their name, in worlds of three brokers with random latencies.

Nothing fails here but the order in which frames arrive: a topic is created, written, deleted, created again at
once, and written again. Then each replica of the new topic must hold its records, all of them, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Together
from targets.broker.core.zookeeper import CONTROLLER, topic_path
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.clients.operations import CreateTopic, DeleteTopic, Operation, Produce
from targets.simulator.broker.storage.records import content_of
from targets.simulator.broker.world import SETTINGS, Randomness, World
from targets.simulator.zookeeper import ops
from tests.kept import exhaustive, keep
from tests.simulator.worlds import IDS, TOPIC, TP, WAIT_S, boot, has, leads, settled

SEEDS = range(100)
TRIES_MAX = 50


@dataclass(slots=True)
class Story:
    """One topic's two generations: what was acknowledged of the second, and how its replicas end."""

    seed: int
    protocol: str
    acknowledged: list[str] = field(default_factory=list)
    world: World = field(init=False)

    def play(self) -> list[str]:
        """Play the story; return what is wrong at its end, in words."""
        self.world = World(seed=self.seed, protocol=self.protocol, ids=IDS, randomness=Randomness())
        boot(self.world)
        chance = Random(self.seed)
        brokers = list(IDS.values())
        chance.shuffle(brokers)
        perform(self.world, partial(CreateTopic, topic=TOPIC, assignments=[brokers]))
        self._write("old", acks=-1)
        self.world.run(chance.random())
        perform(self.world, partial(DeleteTopic, topic=TOPIC))
        self.world.run(chance.choice((0.0, 0.01, 0.05)))
        chance.shuffle(brokers)
        perform(self.world, partial(CreateTopic, topic=TOPIC, assignments=[brokers]))
        for group in ("new", "newer", "newest"):
            self.acknowledged += self._write(group, acks=-1)
            self.world.run(2 * chance.random())
        self.world.until(lambda: not self.wrong(), WAIT_S)
        return self.wrong()

    def _write(self, group: str, *, acks: int) -> list[str]:
        """Produce until records of that group were acknowledged; return those that were."""
        client = SimClient(self.world)
        for number in range(TRIES_MAX):
            values = [f"{group}-{number}.{at}" for at in range(3)]
            sent: Produce = client.begin_produce(TOPIC, 0, f"{group}-{number}", values, acks=acks, timeout_s=2.0)
            assert self.world.until(lambda sent=sent: sent.done, WAIT_S)  # type: ignore[misc]
            if not sent.error:
                return list(sent.offsets)
        return []

    def wrong(self) -> list[str]:
        """Return how the replicas differ from what was acknowledged, none if they are as they must be."""
        held = {name: records(self.world, name) for name in self.world.nodes}
        found = [f"{name} holds {value}" for name, of in held.items() for value in of if value.startswith("old")]
        found += [
            f"{name} lacks {value}" for name, of in held.items() for value in self.acknowledged if value not in of
        ]
        found += [] if self.acknowledged else ["nothing was acknowledged"]
        return found


def perform(world: World, make: partial[Operation]) -> None:
    """Perform one administrator's operation."""
    operation = make(world, "admin")
    assert world.until(lambda: operation.done, WAIT_S)
    assert "" == operation.error, f"{make}: {operation.error}"


def records(world: World, name: str) -> list[str]:
    """Return the values in a node's log of the topic, in order."""
    log = world.nodes[name].disk.logs.get(TP)
    if log is None or log.deleted:
        return []
    return [value for batch in log.batches for _, _, value in content_of(batch.payload).records]


@pytest.mark.parametrize(
    "protocol",
    ["hw", "kip380"]
    + [
        pytest.param(each, marks=[pytest.mark.slow, exhaustive])
        for each in PROTOCOLS
        if each not in ("hw", "kip380")
    ],
)
@pytest.mark.parametrize("seeds", keep([SEEDS[:25], SEEDS[25:]], SEEDS[:25]))
def test_topic_that_is_deleted_and_created_again_takes_nothing_of_its_predecessor(
    protocol: str, seeds: range
) -> None:
    """Source: KIP-516, Motivation: "if a topic is deleted and recreated with the same name"."""
    wrong = {seed: found for seed in seeds if (found := Story(seed, protocol).play())}
    assert {} == wrong


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip279", "kip380"])
def test_high_watermark_of_the_deleted_topic_keeps_nothing_that_the_new_leader_lacks(protocol: str) -> None:
    """B, killed before its first checkpoint of the new topic, knows no high watermark and not the old topic's."""
    world = World(protocol=protocol, ids=IDS, session_timeout_ms=2_000)
    boot(world)
    client = SimClient(world)
    client.create_topic(TOPIC, [IDS["B"], IDS["A"]])
    client.produce(TOPIC, 0, "old", [f"old.{at}" for at in range(5)], acks=-1)
    assert world.until(lambda: {5} == {world.nodes[name].disk.high_watermarks.get(TP) for name in "AB"}, WAIT_S)
    perform(world, partial(DeleteTopic, topic=TOPIC))
    assert world.until(lambda: not has(world, "A") and not has(world, "B"), WAIT_S)
    client.create_topic(TOPIC, [IDS["B"], IDS["A"]])
    assert world.until(lambda: leads(world, "B") and has(world, "A"), WAIT_S)
    cut = world.links.cut("A", "B", close=True)
    client.produce(TOPIC, 0, "new", ["new.0", "new.1", "new.2"], acks=1)
    world.nodes["B"].kill()
    assert world.until(lambda: leads(world, "A"), WAIT_S)
    client.produce(TOPIC, 0, "newer", ["newer.0", "newer.1"], acks=1)
    world.links.heal(cut)
    boot(world, "B")
    assert world.until(lambda: leads(world, "A") and settled(world), WAIT_S)
    assert ["newer.0", "newer.1"] == records(world, "A") == records(world, "B")


def test_new_controller_names_a_topic_whose_deletion_was_missed_and_nobody_serves_the_old_one() -> None:
    """
    Source: Kafka Replication Design V3, discussion 5: "do we need partition version id".

    The controller's StopReplica never arrives, and behind it waits what would create the topic again. Then the
    controller dies, and the next one names every partition that there is (INIT).
    """
    world = World(protocol="kip380", ids=IDS, session_timeout_ms=2_000)
    boot(world)
    client = SimClient(world)
    client.create_topic(TOPIC, [IDS["A"], IDS["B"]])
    client.produce(TOPIC, 0, "old", [f"old.{at}" for at in range(5)], acks=-1)
    for name in "AB":
        world.links.hold("stop-command", "C", name, "request")
    perform(world, partial(DeleteTopic, topic=TOPIC))
    client.create_topic(TOPIC, [IDS["B"], IDS["A"]])
    world.run(0.5)
    assert [5, 5] == [len(records(world, name)) for name in "AB"]
    world.nodes["C"].kill()
    assert world.until(lambda: leads(world, "B") and [] == records(world, "A") == records(world, "B"), WAIT_S)
    client.produce(TOPIC, 0, "new", ["new.0", "new.1"], acks=-1)
    assert ["new.0", "new.1"] == records(world, "A") == records(world, "B")
    for name in "AB":
        world.nodes[name].kill()
    boot(world, "A", "B")
    assert world.until(lambda: leads(world, "A") or leads(world, "B"), WAIT_S)
    world.run(WAIT_S)
    assert ["new.0", "new.1"] == [value for _, value in client.read_all(TOPIC, 0)]


def test_broker_that_was_down_while_its_topic_was_created_again_returns_with_nothing_of_it() -> None:
    world = World(protocol="kip380", ids=IDS, session_timeout_ms=2_000)
    boot(world)
    client = SimClient(world)
    client.create_topic(TOPIC, [IDS["A"], IDS["B"]])
    client.produce(TOPIC, 0, "old", [f"old.{at}" for at in range(5)], acks=-1)
    world.nodes["B"].kill()
    perform(world, partial(DeleteTopic, topic=TOPIC))
    client.create_topic(TOPIC, [IDS["A"], IDS["B"]])
    assert world.until(lambda: leads(world, "A") and [] == records(world, "A"), WAIT_S)
    client.produce(TOPIC, 0, "new", ["new.0"], acks=1)
    boot(world, "B")
    assert world.until(lambda: ["new.0"] == records(world, "B"), WAIT_S)


def test_topic_whose_deletion_ends_in_the_middle_is_not_begun_again_and_can_be_deleted() -> None:
    """A controller that wrote its first states again would find half of their nodes there, and try for ever."""
    together = Together(ask_ops_max=4, deletes_max=2)
    world = World(protocol="kip380", ids=IDS, settings={**SETTINGS, "together": together})
    boot(world)
    for topic in (TOPIC, "other"):
        perform(world, partial(CreateTopic, topic=topic, assignments=[[1, 2], [2, 1]]))
    assert world.until(lambda: all(has(world, "A", TopicPartition(TOPIC, number)) for number in (0, 1)), WAIT_S)
    lost: list[str] = []

    def lose_the_next(parts: Sequence[ops.Write], session: int) -> None:
        if not lost and any(
            isinstance(part, ops.Delete) and part.path.startswith(topic_path(TOPIC)) for part in parts
        ):
            lost.append(world.zookeeper.sessions[session].owner)
            world.zookeeper.losing[lost[0]] = False

    world.zookeeper.tree.wrote.append(lose_the_next)
    delete = DeleteTopic(world, "admin", topic=TOPIC)
    assert world.until(lambda: delete.done, WAIT_S)
    assert "the connection to ZooKeeper was lost" in delete.error
    assert topic_path(TOPIC) in world.zookeeper.tree.nodes
    before = world.zookeeper.tree.zxid
    world.zookeeper.expire(world.zookeeper.session_of(CONTROLLER))  # the next controller reads what is left
    world.run(5.0)
    assert world.zookeeper.tree.zxid - before < 30
    perform(world, partial(DeleteTopic, topic=TOPIC))
    world.run(1.0)
    assert not [path for path in world.zookeeper.tree.nodes if path.startswith(topic_path(TOPIC))]
    assert not any(has(world, name, TopicPartition(TOPIC, number)) for name in IDS for number in (0, 1))
