"""What Kafka's family needs of its targets: paths in ZooKeeper, what stands there, how requests are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.ability import Ability
from harness.target.metadata import PartitionTruth
from harness.target.operator import REQUESTS

# What ZooKeeper shows, and what an operator can ask for there.
ABILITIES = frozenset({*REQUESTS, Ability.CONTROLLER, Ability.MEMBERS})


class Port(Protocol):
    """ZooKeeper below the cluster's chroot, for writes that only an operator makes."""

    def read(self, path: str) -> bytes | None:
        """Return a znode's data, None if there is no such znode."""

    def update(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """
        Write what `change` makes of a znode's data, None if there is no such znode.

        What was written meanwhile is not written over: then it is read, and changed, once more. The znode and its
        parents are created if they do not exist.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNode:
    """What a partition's znode holds, with broker ids; leader -1 is no leader."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    version: int

    def named(self, name_of: Callable[[int], str | None]) -> PartitionTruth:
        """Return the state with the names of nodes."""
        return PartitionTruth(
            leader=name_of(self.leader),
            epoch=self.leader_epoch,
            in_sync=tuple(map(name_of, self.isr)),
            version=self.version,
        )


class Layout(Protocol):
    """One target's state in ZooKeeper; all paths are below the chroot."""

    def registration_path(self, broker_id: int) -> str:
        """Return the path of a broker's ephemeral znode."""

    def controller_path(self) -> str:
        """Return the path of the controller's ephemeral znode."""

    def controller_id(self, data: bytes) -> int:
        """Return the broker id in the data of the controller's znode."""

    def partition_path(self, topic: str, partition: int) -> str:
        """Return the path of the znode with a partition's leader and ISR."""

    def topic_path(self, topic: str) -> str:
        """Return the path of the znode with a topic's assignment."""

    def assignment(self, data: bytes) -> Mapping[int, tuple[int, ...]]:
        """Return the broker ids of each partition in the data of a topic's znode."""

    def partition_state(self, data: bytes, version: int) -> StateNode:
        """Return the partition's state in the data of its znode."""

    def elections_path(self) -> str:
        """Return the path of the znode at which a request for an election stands until a controller takes it."""

    def elect(self, port: Port, topic: str, partition: int, broker_id: int) -> str:
        """Ask the controller to elect an ISR member although no node failed; return what was asked."""

    def move(self, port: Port, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
        """Ask the controller to move a partition to these replicas; return what was asked."""

    def remove(self, port: Port, topic: str, partitions: Sequence[int]) -> str:
        """
        Ask the controller to take these partitions, its highest, out of a topic; return what was asked.

        Raises:
            UsageError: the target cannot remove partitions.
        """

    def wanted(self, port: Port, topic: str, partition: int) -> tuple[int, ...]:
        """Return the replicas that a partition is to have: those asked for last, else those that it has."""
