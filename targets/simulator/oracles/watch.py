"""
Oracles: invariants of every step of a world, each checked where its data has changed.

    committed       every record that was once below the high watermark of a broker that claims leadership is on
                    every electable replica (ZooKeeper's ISR), and no other record is committed at its offset
    prefix          a follower that has truncated its log and fetches from a leader in that leader's epoch agrees
                    with it below both ends
    acknowledged    a record that was acknowledged to a client with acks=all is committed at that very offset
    leaders         one broker leads in one epoch
    high-watermark  that of a leader does not fall within its epoch, and is not above the end of its log

Every partition is watched. Only the first violation of a rule in a partition is kept; its consequences are not
recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from harness.events import Produce
from harness.model import Op, OpType, Source
from targets.broker.core.events import Effect, Event, Start
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Replica
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.oracles.partition import PartitionOracle
from targets.simulator.oracles.violation import Rule, Violation, Violations
from targets.simulator.world import World

ACKS_ALL: Final = -1
_NONE: Final[Mapping[TopicPartition, Replica]] = {}


class Oracles:
    """
    The rules, checked on the partitions of one world.

    listen(op) receives the world's history; without it clients' acknowledgements are not checked.
    """

    def __init__(self, world: World, places: Iterable[TopicPartition]) -> None:
        """Start to watch these partitions."""
        self._world = world
        self._violations = Violations(world)
        self._partitions = {tp: PartitionOracle(world, tp, self._violations) for tp in places}
        self._of_path = {leader_and_isr_path(tp): oracle for tp, oracle in self._partitions.items()}
        self._of_node = {
            name: [(tp, oracle.replicas.seen[name], oracle) for tp, oracle in self._partitions.items()]
            for name in world.nodes
        }
        world.watchers.append(self._on_step)
        world.zookeeper.tree.changed.append(self._on_zookeeper)

    @property
    def violations(self) -> Mapping[tuple[Rule, TopicPartition | None], Violation]:
        """The first violation of each rule in each partition, in the order of steps."""
        return self._violations.found

    def listen(self, op: Op) -> None:
        """Note the client answers in an op of the history."""
        if op.source is not Source.CLIENT or op.type is not OpType.OK:
            return
        match op.event:
            case Produce(acks=acks, offset=int(offset), value=value) if acks == ACKS_ALL:
                oracle = self._partitions.get(TopicPartition(op.event.topic, op.event.partition))
                if oracle is not None:
                    oracle.on_acknowledged(offset, value)

    def _on_step(self, name: str, event: Event, effects: Sequence[Effect]) -> None:
        del effects
        node = self._world.nodes[name]
        replicas = _NONE if node.process is None else node.process.broker.state.replicas
        logs = node.disk.logs
        for tp, seen, oracle in self._of_node[name]:
            if not seen.is_still(replicas.get(tp), logs.get(tp)):
                oracle.on_step(name, started=isinstance(event, Start))

    def _on_zookeeper(self, path: str) -> None:
        oracle = self._of_path.get(path)
        if oracle is not None:
            oracle.on_state()
