"""Clients on a simulated cluster: the calls of a workload's client, blocking and not blocking."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness import events
from harness.history.file import Listener
from harness.model import PreconditionError, UsageError
from harness.workload.plan import Clients
from targets.broker.core.messages import TopicPartition
from targets.simulator.broker.clients.addition import AddPartitions
from targets.simulator.broker.clients.alteration import AlterTopic
from targets.simulator.broker.clients.deletion import DeleteRecords
from targets.simulator.broker.clients.operations import CreateTopic, Operation, Produce, Read
from targets.simulator.broker.clients.workload import SimWorkload
from targets.simulator.broker.world import World

# An operation always ends by itself; a longer one is a bug of the simulator.
OPERATION_S_MAX: Final = 600.0


class SimClient:
    """
    The clients of one world; every call is one process of the history, client-1, client-2, ...

    Args:
        listeners: of the history that the world records into; None: no client may have a process of its own, since
            the history decides when it is killed.

    Raises:
        PreconditionError: the cluster does not do what the scenario needs.
    """

    sends_once = True
    churns = True

    def __init__(self, world: World, listeners: list[Listener] | None = None) -> None:
        self._world = world
        self._listeners = listeners
        self._numbers = itertools.count(1)

    # --- blocking --------------------------------------------------------------------------------------------
    def create_topic(self, topic: str, replicas: Sequence[int], *further: Sequence[int]) -> None:
        """Create a topic with a partition on each of these groups of brokers; return when that was answered."""
        assignments = (replicas, *further)
        made = CreateTopic(self._world, self._name(), topic, assignments)
        self._await(made)
        if made.error:
            on = ", ".join(str(list(ids)) for ids in assignments)
            raise PreconditionError(f"create topic {topic} on {on}: {made.error}")

    def add_partitions(self, topic: str, first: int, *assignments: Sequence[str], ids: Mapping[str, int]) -> None:
        """Add partitions to a topic; return when that was answered."""
        del ids  # the world knows them
        event = events.AddPartitions(topic=topic, first=first, assignments=tuple(map(tuple, assignments)))
        added = AddPartitions(self._world, self._name(), event)
        self._await(added)
        if added.error:
            raise PreconditionError(f"add partitions of {topic} from {first} on: {added.error}")

    def begin_workload(self, clients: Clients, seed: int, *, nodes: Mapping[str, str]) -> SimWorkload:
        """Start a workload's clients, which work as the world steps; raise UsageError if one is impossible."""
        del nodes  # a node's name is its address
        clients.require_simulable()
        if clients.killed and self._listeners is None:
            raise UsageError(f"clients {', '.join(clients.killed)}: kill_after=…; expected a run with a history")
        workload = SimWorkload(self._world, clients, seed, self._name)
        if clients.killed and self._listeners is not None:
            self._listeners.append(workload.listen)
        return workload

    def produce(
        self,
        topic: str,
        partition: int,
        name: str,
        values: Sequence[str],
        *,
        acks: int,
        codec: str = "none",
        singly: bool = False,
        via: str = "",
        timeout_s: float | None = None,
        age_ms: int | None = None,
    ) -> list[int]:
        """
        Send the values in one batch, or each in its own when `singly`; return their offsets.

        Args:
            via: the node to send to, leader or not; "" for the leader by ZooKeeper's state.

        Raises:
            PreconditionError: one of them was not acknowledged; the history has all that were sent.
        """
        sent = self.begin_produce(
            topic,
            partition,
            name,
            values,
            acks=acks,
            codec=codec,
            singly=singly,
            via=via,
            timeout_s=timeout_s,
            age_ms=age_ms,
        )
        self._await(sent)
        return sent.result()

    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Read from the log's start to the high watermark, as a consumer does; a final read of the history."""
        read = self.begin_read(topic, partition, via=via)
        self._await(read)
        if read.error:
            raise PreconditionError(f"read {topic}-{partition}: {read.error}")
        return read.records

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records before an offset (-1: all that are committed), and return the low watermark."""
        deletion = DeleteRecords(self._world, self._name(), TopicPartition(topic, partition), before)
        self._await(deletion)
        if deletion.error:
            raise PreconditionError(f"delete records of {topic}-{partition} before {before}: {deletion.error}")
        return deletion.low_watermark

    def alter_topic(self, topic: str, setting: str, to: str) -> None:
        """Give a topic this setting, and no other of its own."""
        alteration = AlterTopic(self._world, self._name(), topic, setting, to)
        self._await(alteration)
        if alteration.error:
            raise PreconditionError(f"setting {setting}={to} of {topic}: {alteration.error}")

    # --- not blocking ----------------------------------------------------------------------------------------
    def begin_produce(
        self, topic: str, partition: int, name: str, values: Sequence[str], **options: Any
    ) -> Produce:
        """Start to send the values, as `produce`; the result comes as the world steps."""
        return Produce(self._world, self._name(), TopicPartition(topic, partition), name, values, **options)

    def begin_read(self, topic: str, partition: int, *, via: str = "") -> Read:
        """Start to read, as `read_all`; the result comes as the world steps."""
        return Read(self._world, self._name(), TopicPartition(topic, partition), via=via)

    def _name(self) -> str:
        return f"client-{next(self._numbers)}"

    def _await(self, operation: Operation) -> None:
        ended = self._world.until(lambda: operation.done, OPERATION_S_MAX)
        assert ended, f"{operation.name}: not done after {OPERATION_S_MAX:.0f} s of virtual time"
