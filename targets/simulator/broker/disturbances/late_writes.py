"""
Writes of an ISR that reach ZooKeeper late: the topic has gone by then, and another of its name has begun.

All requests of one broker wait at its ZooKeeper server, whose disk is slow, while its session lives. They go on
once a state of the next topic has the version that the leader knew, which is the one moment at which its write
could land there; or after a while, if there is none. A controller's never wait: without it no topic would come or
go. So that an ISR changes while a topic is young, a follower is not registered now and then when it begins.
Source:  KIP-516, Motivation; Apache ZooKeeper, ZooKeeperServer.submitRequest: a session is touched before its
request waits for the disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from harness.model import Op
from targets.broker.core.assignments import decode_topic
from targets.broker.core.events import Effect, Event, ZkAsk
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    PartitionState,
    ZkMulti,
    ZkNode,
    ZkSet,
    decode_state,
    leader_and_isr_path,
    topic_path,
)
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.disturbances.by_hand import end_sessions
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime
from targets.simulator.zookeeper import ops

CALL: Final = "late writes"
ABSENT: Final = "absent follower"
# How often a wide world with a topic that comes and goes has such writes, how often one of them is late, and how
# long it waits at most: less than a session lives.
SHARE: Final = 0.5
LATE_SHARE: Final = 0.8
WAITS_NS_MAX: Final = 900 * NS_PER_MS
# How often a follower is not registered when a topic begins, and how many times in a world.
ABSENT_SHARE: Final = 0.6
ABSENT_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LateWrite:
    """
    A write that waits.

    Attributes:
        number: unique in its world.
        node: of the broker that asked.
        path: of the state.
        state: as it is to be written, with the version that it is to have been before.
    """

    number: int
    node: str
    path: str
    state: PartitionState


class LateWrites:
    """
    The late writes of one wide world, drawn from the seed alone: all else is drawn as without them.

    Attributes:
        held: how many writes waited.
        met: how many of them were to go on beside a state of the next topic, of the version that they expect.

    Args:
        tps: the partitions of topics that clients create and delete.
        last_line: of the schedule's last step; from then on nothing waits.
    """

    def __init__(self, world: World, seed: int, tps: Sequence[TopicPartition], last_line: int) -> None:
        self.held = self.met = 0
        self._world = world
        self._time = PlayTime(last_line)
        self._chance = Random(f"late writes {seed}")
        self._paths = dict.fromkeys(map(leader_and_isr_path, tps))
        self._topics = dict.fromkeys(topic_path(tp.topic) for tp in tps)
        self._waiting: dict[str, LateWrite] = {}  # by node
        self._absent_left = ABSENT_MAX
        if tps and self._chance.random() < SHARE:
            world.on_call(CALL, self._end)
            world.on_call(ABSENT, self._expire)
            world.watchers.append(self._on_step)
            world.zookeeper.tree.changed.append(self._on_change)

    def listen(self, op: Op) -> None:
        """Start with the first step; with the last one let all go on."""
        self._time.begins(op)
        if self._time.over:  # at once, and not now: nothing may be recorded within a listener
            for late in self._waiting.values():
                self._world.clock.after(0, ("call", CALL, late))

    @property
    def _playing(self) -> bool:
        return self._time.begun and not self._time.over

    def _is_controller(self, name: str) -> bool:
        node = self._world.zookeeper.tree.nodes.get(CONTROLLER)
        return node is not None and int(node.data) == self._world.ids[name]

    # --- what waits --------------------------------------------------------------------------------------------
    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        """Let what the broker has just asked wait, if it changes an ISR of a topic that comes and goes."""
        del event
        if not self._playing or name in self._waiting:
            return
        for path, state in self._asked(effects):
            if state.leader == self._world.ids[name] and not self._is_controller(name):
                if self._chance.random() < LATE_SHARE:
                    self._hold(name, path, state)
                return

    def _asked(self, effects: Sequence[Effect]) -> Iterator[tuple[str, PartitionState]]:
        """Yield each state that is to be written over one of the watched, and is no decision of a controller."""
        for effect in effects:
            for op in effect.ops if isinstance(effect, ZkAsk) else ():
                parts = op.ops if isinstance(op, ZkMulti) else ()
                if any(part.path == CONTROLLER_EPOCH for part in parts):
                    continue
                for part in parts:
                    if isinstance(part, ZkSet) and part.path in self._paths:
                        node = ZkNode(data=part.data, version=part.version, owner=0, czxid=0)
                        yield part.path, decode_state(node)

    def _hold(self, name: str, path: str, state: PartitionState) -> None:
        self.held += 1
        late = LateWrite(number=self.held, node=name, path=path, state=state)
        self._waiting[name] = late
        self._world.zookeeper.hold(name)
        self._world.clock.after(WAITS_NS_MAX, ("call", CALL, late))

    def _end(self, late: LateWrite) -> None:
        if self._waiting.get(late.node) == late:
            del self._waiting[late.node]
            self._world.zookeeper.release(late.node)

    # --- what it waits for -------------------------------------------------------------------------------------
    def _on_change(self, path: str) -> None:
        """Let a write go on whose moment has come; take a follower away from a topic that begins."""
        node = self._world.zookeeper.tree.nodes.get(path)
        if node is None:
            return
        if path in self._topics and node.czxid == node.mzxid:
            self._take_away(node)
        elif path in self._paths:
            state = state_in(node)
            for late in self._waiting.values():
                is_next = late.path == path and state.topic_id != late.state.topic_id
                if is_next and state.zk_version == late.state.zk_version:
                    self.met += 1
                    self._world.clock.after(0, ("call", CALL, late))

    def _take_away(self, topic: ops.Node) -> None:
        """End the session of a follower before the first ISR is written; it is soon back, and joins."""
        if not (self._playing and self._absent_left):
            return
        name_of = self._world.name_of
        followers: dict[str, None] = {}
        for replicas in decode_topic(topic.data).replicas.values():
            leader, *others = filter(None, map(name_of, replicas))
            if not self._is_controller(leader):
                followers |= dict.fromkeys(others)
        chosen = [name for name in followers if name not in self._waiting and not self._is_controller(name)]
        if chosen and self._chance.random() < ABSENT_SHARE:
            self._absent_left -= 1
            self._world.clock.after(0, ("call", ABSENT, self._chance.choice(chosen)))

    def _expire(self, name: str) -> None:
        end_sessions(self._world, name)
