"""
A client of a wide world that deletes the oldest records of partitions, while a schedule is played.

Each deletion is drawn from the seed alone: when, in which partition, and before which offset: all that is
committed, as retention jobs ask, or an offset somewhere in the log, or past its end.
Source:  KIP-107; kafka-delete-records.sh.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from harness.model import Op
from harness.workload.plan import Place
from targets.broker.core.deletions import ALL_COMMITTED
from targets.broker.core.messages import TopicPartition
from targets.simulator.clock import NS_PER_MS
from targets.simulator.deletion import DeleteRecords
from targets.simulator.play_time import PlayTime
from targets.simulator.world import World

NAME: Final = "deleter"
# How often a wide world has one, how many deletions it asks for, within which time, and how long each may take.
SHARE: Final = 0.3
DELETIONS_MAX: Final = 6
WITHIN_NS: Final = 1_500 * NS_PER_MS
TIMEOUT_S: Final = 0.4
# Offsets that it asks for lie up to so far past the start of the log of any replica.
AHEAD_MAX: Final = 12


class Deleter:
    """
    One deleter.

    Args:
        last_line: of the schedule's last step, with which it stops: what comes then must heal.
    """

    def __init__(self, world: World, seed: int, places: Sequence[Place], last_line: int) -> None:
        self._world = world
        self._places = places
        self._chance = Random(f"deleter {seed}")
        self._time = PlayTime(last_line)
        self._count = 0
        world.on_call(NAME, self._act)

    def listen(self, op: Op) -> None:
        """Start with the first step."""
        if self._time.begins(op) and self._chance.random() < SHARE:
            for _ in range(self._chance.randint(1, DELETIONS_MAX)):
                self._world.clock.after(int(self._chance.random() * WITHIN_NS), ("call", NAME))

    def _act(self) -> None:
        place = self._chance.choice(self._places)
        before = ALL_COMMITTED if self._chance.random() < 0.5 else self._offset(place)
        if not self._time.over:
            self._count += 1
            name = f"client-{NAME}-{self._count}"
            DeleteRecords(self._world, name, TopicPartition(*place), before, timeout_s=TIMEOUT_S)

    def _offset(self, place: Place) -> int:
        tp = TopicPartition(*place)
        logs = [node.disk.logs[tp] for node in self._world.nodes.values() if tp in node.disk.logs]
        start = max((log.start_offset for log in logs if not log.deleted), default=0)
        return start + self._chance.randint(1, AHEAD_MAX)
