"""Clients on a simulated cluster: the calls of a workload's client, and the same without waiting for their end."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

from harness.model import PreconditionError
from targets.broker.core.messages import TopicPartition
from targets.simulator.operations import CreateTopic, Operation, Produce, Read
from targets.simulator.world import World

# An operation ends by itself, question by question; one that does not is a mistake of ours.
OPERATION_S_MAX: Final = 600.0


class SimClient:
    """
    The clients of one world; every call is one process of the history, client-1, client-2, ...

    Raises:  PreconditionError when the cluster does not do what the scenario needs of it.
    """

    sends_once = True

    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers = itertools.count(1)

    # --- and wait for the end --------------------------------------------------------------------------------
    def create_topic(self, topic: str, replicas: Sequence[int]) -> None:
        """Make a topic of one partition on these brokers; return when the request was answered."""
        made = CreateTopic(self._world, self._name(), topic, replicas)
        self._await(made)
        if made.error:
            raise PreconditionError(f"create topic {topic} on {list(replicas)}: {made.error}")

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
    ) -> list[int]:
        """
        Send the values in one batch, or each in one of its own when `singly`; give their offsets.

        Shapes:  via is the node that is sent to, whoever leads; "" for who leads by ZooKeeper's word.
        Raises:  PreconditionError when one of them was not acknowledged; the history has all that were sent.
        """
        sent = self.begin_produce(
            topic, partition, name, values, acks=acks, codec=codec, singly=singly, via=via, timeout_s=timeout_s
        )
        self._await(sent)
        return sent.result()

    def read_all(self, topic: str, partition: int, *, via: str = "") -> list[tuple[int, str]]:
        """Read from offset 0 to the high watermark, as a consumer may; a final read of the history."""
        read = self.begin_read(topic, partition, via=via)
        self._await(read)
        if read.error:
            raise PreconditionError(f"read {topic}-{partition}: {read.error}")
        return read.records

    # --- and do not wait -------------------------------------------------------------------------------------
    def begin_produce(
        self, topic: str, partition: int, name: str, values: Sequence[str], **options: Any
    ) -> Produce:
        """Send the values, as `produce`; what becomes of them is seen when the world goes on."""
        return Produce(self._world, self._name(), TopicPartition(topic, partition), name, values, **options)

    def begin_read(self, topic: str, partition: int, *, via: str = "") -> Read:
        """Read, as `read_all`; what is read is seen when the world goes on."""
        return Read(self._world, self._name(), TopicPartition(topic, partition), via=via)

    def _name(self) -> str:
        return f"client-{next(self._numbers)}"

    def _await(self, operation: Operation) -> None:
        ended = self._world.until(lambda: operation.done, OPERATION_S_MAX)
        assert ended, f"{operation.name}: not done after {OPERATION_S_MAX:.0f} s of virtual time"
