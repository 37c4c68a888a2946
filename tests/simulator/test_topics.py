"""
Topics that are deleted and created again under their name, in worlds of three brokers with random latencies.

Nothing fails here but the order in which frames arrive: a topic is created, written, deleted, created again at
once, and written again. Then each replica of the new topic must hold its records, all of them, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from targets.broker.core.rules import PROTOCOLS
from targets.simulator.client import SimClient
from targets.simulator.operations import CreateTopic, DeleteTopic, Operation, Produce
from targets.simulator.records import content_of
from targets.simulator.world import Randomness, World
from tests.simulator.worlds import IDS, TOPIC, TP, WAIT_S, boot

SEEDS = 100
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
        self._do(partial(CreateTopic, topic=TOPIC, replicas=brokers))
        self._write("old", acks=-1)
        self.world.run(chance.random())
        self._do(partial(DeleteTopic, topic=TOPIC))
        self.world.run(chance.choice((0.0, 0.01, 0.05)))
        chance.shuffle(brokers)
        self._do(partial(CreateTopic, topic=TOPIC, replicas=brokers))
        for group in ("new", "newer", "newest"):
            self.acknowledged += self._write(group, acks=-1)
            self.world.run(2 * chance.random())
        self.world.until(lambda: not self.wrong(), WAIT_S)
        return self.wrong()

    def _do(self, make: partial[Operation]) -> None:
        operation = make(self.world, "admin")
        assert self.world.until(lambda: operation.done, WAIT_S), f"seed {self.seed}: {make} did not end"
        assert operation.error == "", f"seed {self.seed}: {make}: {operation.error}"

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
        found += [f"{name} lacks {value}" for name, of in held.items() for value in self.acknowledged if value not in of]
        found += [] if self.acknowledged else ["nothing was acknowledged"]
        return found


def records(world: World, name: str) -> list[str]:
    """Return the values in a node's log of the topic, in order."""
    log = world.nodes[name].disk.logs.get(TP)
    if log is None or log.deleted:
        return []
    return [value for batch in log.batches for _, value in content_of(batch.payload).records]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_topic_that_is_deleted_and_created_again_takes_nothing_of_its_predecessor(protocol: str) -> None:
    """Source: KIP-516, Motivation: "if a topic is deleted and recreated with the same name"."""
    wrong = {seed: found for seed in range(SEEDS) if (found := Story(seed, protocol).play())}
    assert {} == wrong
