"""
An operator of a wide world who removes partitions of a topic that comes and goes, while a schedule is played.

Each request is drawn from the seed alone: when, and how many of the highest partitions are to go, of those that
the topic has then; now and then one that cannot go is named beside them, or the highest is not named, so that none
can go. Clients write to what they believe to be there; the topic's next generation has all partitions again.
Source:  Kafka Replication Design V3, Paths 6 and on_partitions_remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.model import Op
from targets.broker.core.assignments import decode_topic
from targets.broker.core.messages import TopicPartition
from targets.broker.core.wishes import Wishes
from targets.broker.core.zookeeper import ELECTIONS, NodeError, topic_path
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime
from targets.simulator.zookeeper import ops

NAME: Final = "remover"
# How often a wide world with such a topic has one, how many requests it makes, and within which time.
SHARE: Final = 0.5
REQUESTS_MAX: Final = 8
WITHIN_NS: Final = 600 * NS_PER_MS
# How often a request names a partition that cannot go.
WRONG_SHARE: Final = 0.4
# How often that is all but the highest, where a topic has so many.
BELOW_SHARE: Final = 0.7


class Remover:
    """
    One remover.

    Attributes:
        asked: the partitions that it has asked to remove, and that could go when it asked.

    Args:
        tps: the partitions of topics that clients create and delete.
        last_line: of the schedule's last step; nothing is removed after it.
    """

    def __init__(self, world: World, seed: int, tps: Sequence[TopicPartition], last_line: int) -> None:
        self.asked: list[TopicPartition] = []
        self._world = world
        self._topics = list(dict.fromkeys(tp.topic for tp in tps))
        self._chance = Random(f"remover {seed}")
        self._time = PlayTime(last_line)
        world.on_call(NAME, self._act)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if self._time.begins(op) and self._topics and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, REQUESTS_MAX)):
                self._world.clock.after(int(self._chance.random() * WITHIN_NS), ("call", NAME, ""))

    def _act(self, _what: str) -> None:
        chance, tree = self._chance, self._world.zookeeper.tree
        topic, share, wrong = chance.choice(self._topics), chance.random(), chance.random() < WRONG_SHARE
        node = tree.nodes.get(topic_path(topic))
        if self._time.over or node is None:
            return
        try:
            there = sorted(decode_topic(node.data).replicas)
        except NodeError:
            return  # somebody has written something else
        count = 1 + int(share * (len(there) - 1))
        gone = [TopicPartition(topic, number) for number in there[1:][-count:]]
        below = [TopicPartition(topic, number) for number in there[1:-1]]
        if wrong and below and share < BELOW_SHARE:
            self._ask(below)  # not the highest: none of them can go
            return
        self.asked += gone
        if wrong:
            gone.append(TopicPartition(topic, 0))
        if gone:
            self._ask(gone)

    def _ask(self, gone: Sequence[TopicPartition]) -> None:
        """Write what is to go where the controller looks, beside what it has not taken yet."""
        tree = self._world.zookeeper.tree
        node = tree.nodes.get(ELECTIONS)
        data = Wishes(removals=tuple(gone)).beside(None if node is None else node.data)
        write = ops.Set(path=ELECTIONS, data=data, version=ops.ANY_VERSION)
        tree.write((write if node is not None else ops.Create(path=ELECTIONS, data=data),), ops.OPERATOR)
