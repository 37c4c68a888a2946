"""
The ids in the states of partitions: where topics have ids, a state keeps its topic's, whoever writes it, and
nothing of an older topic is written where the next one of its name has its states, also if it has none yet.
A leader whose command came from a release without ids writes none, until the next command.

Source:  KIP-516; Kafka Replication Design V3, discussion 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from targets.broker.core.messages import NO_TOPIC_ID, TopicPartition
from targets.broker.core.zookeeper import BROKER_TOPICS
from targets.simulator.broker.coordination import state_in, state_written
from targets.simulator.broker.oracles.violation import Rule, Violations
from targets.simulator.broker.world import World
from targets.simulator.zookeeper import ops

STATE: Final = "/leaderAndISR"


class TopicIds:
    """The ids of all partitions' states in one world, those of churned topics among them."""

    def __init__(self, world: World, violations: Violations, main: TopicPartition) -> None:
        """Read them, and watch every write; report what is about no watched partition with the main one."""
        self._world = world
        self._violations = violations
        self._main = main
        nodes = world.zookeeper.tree.nodes
        self._ids = {path: state_in(nodes[path]).topic_id for path in nodes if _is_state(path)}
        # Of each state, the leader epoch, and whether all told topics apart when it began.
        self._epochs: dict[str, tuple[int, bool]] = {}
        world.zookeeper.tree.wrote.append(self._on_write)

    def _on_write(self, parts: Sequence[ops.Write], _session: int) -> None:
        for part in parts:
            if isinstance(part, ops.Delete):
                self._ids.pop(part.path, None)
                self._epochs.pop(part.path, None)
            elif isinstance(part, ops.Create | ops.Set) and _is_state(part.path):
                state = state_written(part.data)
                had = max(self._ids.get(part.path, NO_TOPIC_ID), self._made(part.path, state.topic_id))
                self._ids[part.path] = state.topic_id
                if self._is_with_ids(part.path, state.leader_epoch) and state.topic_id < had:
                    what = (
                        "without its topic's id" if state.topic_id == NO_TOPIC_ID else f"as of {state.topic_id:#x}"
                    )
                    who = self._world.name_of(state.leader)
                    text = f"{part.path}, of the topic {had:#x}, is written {what}, with {who} as leader"
                    self._violations.add(Rule.OFFICE, self._main, (), -1, text)

    def _made(self, path: str, topic_id: int) -> int:
        """Return when the topic of a state was made; a state without an id, as of older releases, is of any."""
        topic = self._world.zookeeper.tree.nodes.get(path.removesuffix(STATE).rpartition("/")[0])
        return NO_TOPIC_ID if topic is None or topic_id == NO_TOPIC_ID else topic.czxid

    def _is_with_ids(self, path: str, epoch: int) -> bool:
        """Return True if all tell topics apart, and did so when the leader of this epoch was decided."""
        now = self._world.tells_topics_apart
        known = self._epochs.get(path)
        if known is None or known[0] != epoch:
            known = self._epochs[path] = epoch, now
        return now and known[1]


def _is_state(path: str) -> bool:
    return path.startswith(BROKER_TOPICS) and path.endswith(STATE)
