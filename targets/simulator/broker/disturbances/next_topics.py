"""
An operator who deletes a topic that he has written by hand, and writes the next one of its name at once.

Aimed: while a broker's write about the topic is under way, as its mark or its first states. The next topic has
other replicas, and the version that the broker has read. Where a broker of a release without ids runs, names are
all that tells topics apart, and there are no next topics.
Source:  Kafka Replication Design V3, discussion 5; KIP-516; Kafka's kafka-topics.sh --zookeeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.model import Op
from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Effect, Event, ZkAsk
from targets.broker.core.zookeeper import CONFIG_TOPICS, ZkCreate, ZkMulti, ZkSet, config_path, topic_path
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime
from targets.simulator.zookeeper import ops

NAME: Final = "next topics"
# How often a write is such an occasion, how many of them a run has, and how soon the next topic is there.
SHARE: Final = 0.3
MOST: Final = 4
WITHIN_NS: Final = 3 * NS_PER_MS


class NextTopics:
    """
    The next ones of some topics.

    Args:
        topics: those that are written by hand alone.
        last_line: of the schedule's last step, with which it stops: what comes then must heal.
    """

    def __init__(self, world: World, seed: int, topics: Sequence[str], last_line: int) -> None:
        self._world = world
        self._paths = {topic: topic_path(topic) for topic in topics}
        self._chance = Random(f"next topics {seed}")
        self._time = PlayTime(last_line)
        self._left = MOST
        world.watchers.append(self._on_step)
        world.on_call(NAME, self._replace)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        self._time.begins(op)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        del name, event
        if not self._time.begun or self._time.over or not self._left:
            return
        for effect in effects:
            if not isinstance(effect, ZkAsk):
                continue
            for topic in self._written(effect):
                if self._left and self._chance.random() < SHARE:
                    self._left -= 1
                    self._world.clock.after(int(self._chance.random() * WITHIN_NS), ("call", NAME, topic))

    def _written(self, ask: ZkAsk) -> list[str]:
        """Return the topics at or below whose nodes it writes."""
        parts = (part for op in ask.ops if isinstance(op, ZkMulti) for part in op.ops)
        paths = [part.path for part in parts if isinstance(part, ZkCreate | ZkSet)]
        return [
            topic
            for topic, path in self._paths.items()
            if any(each == path or each.startswith(f"{path}/") for each in paths)
        ]

    def _replace(self, topic: str) -> None:
        world, path = self._world, self._paths[topic]
        tree = world.zookeeper.tree
        if self._time.over or path not in tree.nodes or not world.tells_topics_apart:
            return
        below = sorted((each for each in tree.nodes if each.startswith(f"{path}/")), reverse=True)
        gone: list[ops.Write] = [ops.Delete(path=each) for each in (*below, path)]
        if config_path(topic) in tree.nodes:  # its settings go with it, and are not those of the next one
            gone += [ops.Delete(path=config_path(topic))]
            gone += [ops.Set(path=CONFIG_TOPICS, data=b"", version=ops.ANY_VERSION)]
        tree.write(gone, ops.OPERATOR)
        brokers = list(world.ids.values())
        replicas = tuple(self._chance.sample(brokers, self._chance.randint(1, min(3, len(brokers)))))
        tree.write((ops.Create(path=path, data=encode_assignment({0: replicas})),), ops.OPERATOR)
