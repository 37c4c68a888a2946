"""
A client of a wide world that deletes the oldest records of partitions, while a schedule is played.

Each deletion is drawn from the seed alone: when, in which partition, and before which offset: all that is
committed, as retention jobs ask, or an offset somewhere in the log, or past its end.
In some worlds more are aimed at what is rare: soon after an ISR has shrunk, inside one of the last batches that
are committed. Then whoever is out of sync returns to a log that starts inside a batch, past its own end or past
where it parted from the others.
Source:  KIP-107; kafka-delete-records.sh; KAFKA-6975; KIP-101, Maintaining the LeaderEpochSequenceFile.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.model import Op
from harness.workload.plan import Place
from targets.broker.core.deletions import ALL_COMMITTED
from targets.broker.core.messages import Batch, TopicPartition
from targets.broker.core.zookeeper import leader_and_isr_path
from targets.simulator.broker.clients.deletion import DeleteRecords
from targets.simulator.broker.coordination import state_in
from targets.simulator.broker.world import World
from targets.simulator.engine.clock import NS_PER_MS
from targets.simulator.engine.play_time import PlayTime

NAME: Final = "deleter"
# How often a wide world has one, how many deletions it asks for, within which time, and how long each may take.
SHARE: Final = 0.3
DELETIONS_MAX: Final = 6
WITHIN_NS: Final = 1_500 * NS_PER_MS
TIMEOUT_S: Final = 0.4
# Offsets that it asks for lie up to so far past the start of the log of any replica.
AHEAD_MAX: Final = 12
# How often a wide world has aimed ones, how often one follows a shrunk ISR, and how soon.
AIMED: Final = "aimed deleter"
AIMED_SHARE: Final = 0.3
FOLLOWS_SHARE: Final = 0.6
AIMED_WITHIN_NS: Final = 200 * NS_PER_MS
# It is inside one of so many of the last batches.
LAST_BATCHES: Final = 3


class Deleter:
    """
    One deleter.

    Args:
        places: the partitions, each with the nodes on which the schedule's head placed it.
        last_line: of the schedule's last step, with which it stops: what comes then must heal.
    """

    def __init__(
        self, world: World, seed: int, places: Sequence[tuple[Place, Sequence[str]]], last_line: int
    ) -> None:
        self._world = world
        self._tps = [TopicPartition(*place) for place, _ in places]
        self._chance = Random(f"deleter {seed}")
        self._time = PlayTime(last_line)
        self._count = 0
        world.on_call(NAME, self._act)
        world.on_call(AIMED, self._aim)
        self._aims = Random(f"aimed deletions {seed}")
        if self._aims.random() < AIMED_SHARE:
            # By the path of its state, each partition with the number of its replicas.
            sizes = (len(nodes) for _, nodes in places)
            self._watched = {
                leader_and_isr_path(tp): (tp, size) for tp, size in zip(self._tps, sizes, strict=True)
            }
            world.zookeeper.tree.changed.append(self._on_change)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if self._time.begins(op) and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, DELETIONS_MAX)):
                self._world.clock.after(int(self._chance.random() * WITHIN_NS), ("call", NAME))

    def _act(self) -> None:
        tp = self._chance.choice(self._tps)
        self._delete(tp, ALL_COMMITTED if self._chance.random() < 0.5 else self._offset(tp))

    def _delete(self, tp: TopicPartition, before: int) -> None:
        if not self._time.over:
            self._count += 1
            name = f"client-{NAME}-{self._count}"
            DeleteRecords(self._world, name, tp, before, timeout_s=TIMEOUT_S)

    def _offset(self, tp: TopicPartition) -> int:
        logs = [node.disk.logs[tp] for node in self._world.nodes.values() if tp in node.disk.logs]
        start = max((log.start_offset for log in logs if not log.deleted), default=0)
        return start + self._chance.randint(1, AHEAD_MAX)

    # --- aimed ones --------------------------------------------------------------------------------------------
    def _on_change(self, path: str) -> None:
        """Plan a deletion if a partition's ISR lacks a replica now."""
        node = self._world.zookeeper.tree.nodes.get(path) if path in self._watched else None
        if node is None or not self._time.begun or self._time.over:
            return
        _, size = self._watched[path]
        if len(state_in(node).isr) < size and self._aims.random() < FOLLOWS_SHARE:
            self._world.clock.after(int(self._aims.random() * AIMED_WITHIN_NS), ("call", AIMED, path))

    def _aim(self, path: str) -> None:
        tp, _ = self._watched[path]
        batches = self._committed(path, tp)
        if batches:
            batch = self._aims.choice(batches[-LAST_BATCHES:])
            self._delete(tp, self._aims.randint(batch.base_offset + 1, batch.last_offset))

    def _committed(self, path: str, tp: TopicPartition) -> list[Batch]:
        """Return the batches of several records in which a leader's log may start."""
        node, world = self._world.zookeeper.tree.nodes.get(path), self._world
        leader = None if node is None else world.name_of(state_in(node).leader)
        broker = None if leader is None else world.nodes[leader].broker
        replica = None if broker is None else broker.state.replicas.get(tp)
        if leader is None or replica is None:
            return []
        log = world.nodes[leader].disk.logs[tp]
        return [
            batch
            for batch in log.batches
            if batch.base_offset < batch.last_offset < replica.high_watermark
            and log.start_offset < batch.last_offset
        ]
