"""
The plans of a workload's clients: which partitions they use, and how.

A plan is data: the text of a schedule has it, one line a client (harness/workload/text.py), and every environment
executes it alike (harness/workload/script.py decides what comes next).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from harness.limits import WORKLOAD_KILL_AFTER_MAX
from harness.model import UsageError

ACKS_ALL: Final = -1


class Place(NamedTuple):
    """One partition of a topic. Its text is that of its directory: `orders-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Lookup(StrEnum):
    """Which offset a consumer asks for: the first, the last to read, the first of some time, an epoch's end."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    EPOCH = "epoch"


class Via(StrEnum):
    """Whom a consumer asks: the leader that metadata names, or every node in turn, whether it leads or not."""

    LEADER = "leader"
    EVERY = "every"


class Library(StrEnum):
    """The client libraries that a producer or a consumer on real nodes may stand on."""

    RAW = "raw"
    LIBRDKAFKA = "librdkafka"
    KAFKA_PYTHON = "kafka-python"
    AIOKAFKA = "aiokafka"
    JAVA = "java"


# How records may be compressed, in the words of producers' plans and of scenarios; `none` for not at all.
CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# The clients that the simulator has: its own, which does what raw does, and so is raw's stand-in there.
SIMULABLE: Final = (None, Library.RAW)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """
    One producer.

    Attributes:
        name: prefix of its values, unique in the run.
        acks: the choices for each request: 0, 1, or -1 for all.
        batch: the fewest and the most records of a batch.
        codecs: the choices for each batch.
        every_ms: the shortest and the longest pause after a request's outcome, in milliseconds.
        within_ms: how long it waits for an outcome; after that the outcome is unknown.
        pad: how many bytes each value has besides its name.
        keys: of how many keys its records are; 0: they have none.
        tombstones: the share of its records that have a key and no value.
        together: the share of requests that send a batch to two of its partitions.
        retries: how often it sends a batch again that was not acknowledged; 0 sends each record once.
        idempotent: its batches are numbered, so that brokers know again what is sent again (KIP-98); with acks=all
            alone, and with retries.
        client: the library that it stands on; None for that of the run. The simulator has only raw, as its own.
        kill_after: it has a process of its own, which is killed after so many acknowledged records, the fewest and
            the most, and started again; None: it lives as long as the run.
    """

    name: str
    places: tuple[Place, ...]
    acks: tuple[int, ...] = (ACKS_ALL,)
    batch: tuple[int, int] = (1, 3)
    codecs: tuple[str, ...] = ("none",)
    every_ms: tuple[int, int] = (5, 40)
    within_ms: int = 400
    pad: int = 0
    keys: int = 0
    tombstones: float = 0.0
    together: float = 0.0
    retries: int = 0
    idempotent: bool = False
    client: Library | None = None
    kill_after: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlan:
    """
    One consumer, which polls all the time. It has no group: it assigns its partitions and seeks by itself.

    Attributes:
        name: unique in the run.
        every_ms: the shortest and the longest pause between two polls, in milliseconds.
        wait_ms: how long a broker may wait for records before it answers an empty poll.
        max_bytes: how much a poll may bring, all partitions together and each.
        seek: the share of polls before which it goes back to an earlier offset.
        lookups: the share of polls before which it asks for an offset. Only simulated consumers do:
            oracles judge the answers.
        client: the library that it stands on; None for that of the run. The simulator has only raw, as its own.
        kill_after: as of a producer, after so many polls that brought records; it begins again at its last
            recorded positions.
    """

    name: str
    places: tuple[Place, ...]
    via: Via = Via.LEADER
    every_ms: tuple[int, int] = (2, 20)
    wait_ms: int = 40
    max_bytes: int = 1_048_576
    seek: float = 0.0
    lookups: float = 0.0
    client: Library | None = None
    kill_after: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnPlan:
    """
    One churner: it creates its topic, writes to it, deletes it, and creates it again under the same name.

    Attributes:
        name: prefix of its values, unique in the run.
        topic: nothing else uses it.
        nodes: the brokers among which each generation's replicas are drawn.
        partitions: of every generation.
        replication: how many replicas each partition has.
        every_ms: the shortest and the longest pause after an outcome, in milliseconds.
        records: the fewest and the most records of a batch.
        within_ms: how long it waits for an outcome; after that the outcome is unknown.
    """

    name: str
    topic: str
    nodes: tuple[str, ...]
    partitions: int = 1
    replication: int = 2
    every_ms: tuple[int, int] = (5, 40)
    records: tuple[int, int] = (1, 3)
    within_ms: int = 120

    @property
    def places(self) -> tuple[Place, ...]:
        """The partitions that its topic has while it is there."""
        return tuple(Place(self.topic, number) for number in range(self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """All clients of a run's workload."""

    producers: tuple[ProducerPlan, ...] = ()
    consumers: tuple[ConsumerPlan, ...] = ()
    churners: tuple[ChurnPlan, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.producers or self.consumers or self.churners)

    @property
    def count(self) -> int:
        """How many there are, of all kinds."""
        return len(self.producers) + len(self.consumers) + len(self.churners)

    @property
    def churned(self) -> tuple[str, ...]:
        """The topics that churners create and delete."""
        return tuple(churner.topic for churner in self.churners)

    @property
    def real(self) -> tuple[str, ...]:
        """The clients that only real nodes can have, since they stand on a library."""
        return tuple(each.name for each in self._both if each.client not in SIMULABLE)

    @property
    def killed(self) -> tuple[str, ...]:
        """The clients in processes of their own, which are killed and started again."""
        return tuple(each.name for each in self._both if each.kill_after is not None)

    @property
    def libraries(self) -> tuple[Library, ...]:
        """The libraries that plans name, each once."""
        return tuple(dict.fromkeys(each.client for each in self._both if each.client is not None))

    def killable(self) -> Clients:
        """
        Return these clients, each in a process of its own that can be killed at any time.

        A client that stands on Kafka's Java library stays as it is: its library is a process already, which would
        outlive it.
        """
        never = (WORKLOAD_KILL_AFTER_MAX, WORKLOAD_KILL_AFTER_MAX)
        return replace(
            self,
            producers=tuple(
                each if each.kill_after or each.client is Library.JAVA else replace(each, kill_after=never)
                for each in self.producers
            ),
            consumers=tuple(
                each if each.kill_after or each.client is Library.JAVA else replace(each, kill_after=never)
                for each in self.consumers
            ),
        )

    def without(self, libraries: Collection[Library]) -> Clients:
        """Return these clients without those whose plans name one of the libraries."""
        return replace(
            self,
            producers=tuple(each for each in self.producers if each.client not in libraries),
            consumers=tuple(each for each in self.consumers if each.client not in libraries),
        )

    @property
    def _both(self) -> tuple[ProducerPlan | ConsumerPlan, ...]:
        return (*self.producers, *self.consumers)

    @property
    def sends_once(self) -> bool:
        """Return True if no record is ever sent again; librdkafka does so, whatever `retries` is."""
        return not any(each.retries or each.client is Library.LIBRDKAFKA for each in self.producers)

    @property
    def idempotent(self) -> tuple[str, ...]:
        """The producers of which the log may have no record twice."""
        return tuple(each.name for each in self.producers if each.idempotent)

    def unnumbered(self) -> Clients:
        """Return these clients for brokers that know no producer ids."""
        return replace(self, producers=tuple(replace(each, idempotent=False) for each in self.producers))

    def require_simulable(self) -> None:
        """Raise UsageError if the simulator cannot have these clients."""
        if self.real:
            raise UsageError(
                f"host sim: clients {', '.join(self.real)} stand on libraries (client=…), which need sockets; "
                "expected a host of real nodes, as --host local"
            )


NO_CLIENTS: Final = Clients()
