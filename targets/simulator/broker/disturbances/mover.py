"""
An operator of a wide world who moves partitions to other replicas while a schedule is played, and back at its end.

Each request is drawn from the seed alone: when, which partition, and to which nodes, also fewer or more than it
had; a later one may take back what an earlier one asked for. What comes after the schedule finds every partition
on its way to where its head placed it.
Source:  Kafka Replication Design V3, F; kafka-reassign-partitions.sh.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.events import Step
from harness.model import Op, OpType
from harness.workload.plan import Place
from targets.broker.core.messages import TopicPartition
from targets.broker.core.wishes import Wishes
from targets.broker.core.zookeeper import ELECTIONS
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime
from targets.simulator.zookeeper import ops

NAME: Final = "mover"
# How often a wide world has one, how many moves it asks for, and within which time.
SHARE: Final = 0.3
MOVES_MAX: Final = 6
WITHIN_NS: Final = 1_500 * NS_PER_MS
MOVE: Final = "move"
HOME: Final = "home"
# The step at which a schedule waits until the cluster is whole.
SETTLE: Final = "settle"


class Mover:
    """
    One mover.

    Args:
        places: the partitions, each with the nodes on which the schedule's head placed it.
        last_line: of the schedule's last step: then it moves all back, so that what comes heals.
    """

    def __init__(
        self, world: World, seed: int, places: Sequence[tuple[Place, Sequence[str]]], last_line: int
    ) -> None:
        self._world = world
        self._homes = {TopicPartition(*place): tuple(world.ids[name] for name in nodes) for place, nodes in places}
        self._chance = Random(f"mover {seed}")
        self._time = PlayTime(last_line)
        self._moved: dict[TopicPartition, None] = {}
        self._rests = False  # the cluster is to be whole
        world.on_call(NAME, self._act)

    def listen(self, op: Op) -> None:
        """Start with the first step; move all back before the cluster must be whole."""
        if self._time.begins(op) and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, MOVES_MAX)):
                self._world.clock.after(int(self._chance.random() * WITHIN_NS), ("call", NAME, MOVE))
            # A schedule may end at any step.
            self._world.clock.after(WITHIN_NS, ("call", NAME, HOME))
        if isinstance(op.event, Step):
            self._rests = self._time.over or (op.event.text == SETTLE and op.type is OpType.INVOKE)
        if self._rests:
            self._return()

    def _return(self) -> None:
        if self._moved:
            self._ask({tp: self._homes[tp] for tp in self._moved})
            self._moved = {}

    def _act(self, what: str) -> None:
        if what == HOME:
            self._return()
        elif not self._rests:
            self._move()

    def _move(self) -> None:
        chance, brokers = self._chance, list(self._world.ids.values())
        tp = chance.choice(list(self._homes))
        home = self._homes[tp]
        there = chance.sample(brokers, chance.randint(1, min(len(brokers), len(home) + 1)))
        self._moved[tp] = None
        self._ask({tp: home if chance.random() < 0.2 else tuple(there)})

    def _ask(self, wanted: dict[TopicPartition, tuple[int, ...]]) -> None:
        """Write what is wanted where the controller looks, beside what it has not taken yet."""
        tree = self._world.zookeeper.tree
        node = tree.nodes.get(ELECTIONS)
        data = Wishes(moves=wanted).beside(None if node is None else node.data)
        write = ops.Set(path=ELECTIONS, data=data, version=ops.ANY_VERSION)
        tree.write((write if node is not None else ops.Create(path=ELECTIONS, data=data),), ops.OPERATOR)
