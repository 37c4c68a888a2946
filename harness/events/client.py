"""Requests of clients and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from harness.events.base import Event, OfPartition, OpType, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Produce(OfPartition):
    """A client sends one record."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    name: str = field(metadata=key("of the group of records, as `m2`"))
    acks: int = field(metadata=key("0, 1, or -1 for all"))
    codec: str
    value: str = field(metadata=key("unique within the run"))
    offset: int | None = field(default=None, metadata=key("on ok, if the answer has one"))
    error: str = field(default="", metadata=key("on fail and info"))
    digest: str = field(
        default="", metadata=key("on invoke: of what was sent, as in a log's `batch`; absent in older histories")
    )

    @property
    def asked(self) -> tuple[str, int, str, int, str, str]:
        """What its invoke and its completion have in common."""
        return self.topic, self.partition, self.name, self.acks, self.codec, self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(OfPartition):
    """A final read from the log's start to the high watermark; a failed read changes nothing."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL)
    PROCESS: ClassVar[str] = "client-N"

    records: tuple[tuple[int, str], ...] | None = field(default=None, metadata=key("on ok: offset and value"))
    start: int | None = field(
        default=None, metadata=key("on ok: where the log began, and so did the read; absent for 0")
    )
    position: int | None = field(default=None, metadata=key("on fail: the offset it reached, if known"))
    high_watermark: int | None = field(default=None, metadata=key("on ok, and on fail together with `position`"))
    error: str = field(default="", metadata=key("on fail"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll(OfPartition):
    """A consumer fetches once, from one node at its position; a failed poll moves no position."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL)
    PROCESS: ClassVar[str] = "client-N"

    node: str = field(metadata=key("that was asked; empty where the client does not tell, as no library does"))
    position: int = field(metadata=key("the offset that was asked for"))
    sought: bool = field(
        default=False, metadata=key("the position was assigned, as by a seek; else the consumer reads on")
    )
    records: tuple[tuple[int, str], ...] | None = field(
        default=None, metadata=key("on ok: offset and value of all that came, in the order of the answer")
    )
    high_watermark: int | None = field(default=None, metadata=key("on ok, as the answer has it"))
    error: str = field(default="", metadata=key("on fail"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(Event):
    """A client asks for a topic; on fail there is certainly none by this, on info there may be one, even later."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    topic: str
    assignments: tuple[tuple[str, ...], ...] = field(
        metadata=key("the nodes of partition 0, 1, and so on; the first is to lead")
    )
    error: str = field(default="", metadata=key("on fail and info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic(Event):
    """A client deletes a topic; on fail it certainly deletes none, on info it may, even later."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    topic: str
    error: str = field(default="", metadata=key("on fail and info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePartitions(Event):
    """An operator takes a topic's highest partitions out of it; on ok they are gone, on info they may go later."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    topic: str
    partitions: tuple[int, ...] = field(metadata=key("the numbers of those that go"))
    error: str = field(default="", metadata=key("on fail and info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(Event):
    """A client asks for more partitions of a topic; on fail it certainly adds none, on info it may, even later."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    topic: str
    first: int = field(metadata=key("the lowest of the new ones"))
    assignments: tuple[tuple[str, ...], ...] = field(
        metadata=key("the nodes of the first new one, of the next, and so on")
    )
    error: str = field(default="", metadata=key("on fail and info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords(OfPartition):
    """A client deletes a partition's oldest records; on fail it certainly deletes none, on info it may."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    before: int = field(metadata=key("the offset before which; -1 for all that is committed"))
    low_watermark: int | None = field(
        default=None, metadata=key("on ok: the smallest log start of the replicas that the leader waits for")
    )
    error: str = field(default="", metadata=key("on fail and info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTopic(Event):
    """A client gives a topic a setting of its own; on fail it certainly changes nothing, on info it may."""

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO)
    PROCESS: ClassVar[str] = "client-N"

    topic: str
    setting: str = field(metadata=key("Kafka's name of it, as `message.format.version`"))
    to: str = field(metadata=key("its new value"))
    error: str = field(default="", metadata=key("on fail and info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStarted(Event):
    """A client in a process of its own begins; after a kill it is another process of the history."""

    PROCESS: ClassVar[str] = "client-N"

    name: str = field(metadata=key("of the client's plan, as `c1`; the same in all its lives"))
    pid: int
    after: str | None = field(default=None, metadata=key("the process that was killed, and that it continues"))
    positions: Mapping[str, int] | None = field(
        default=None,
        metadata=key("of a consumer after a kill: where it is assigned to begin, by partition, as `orders-0`"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKilled(Event):
    """
    A client's process is killed (SIGKILL) and has ended.

    What it said before is in the history first; what it had begun and not ended ends as `info`, a poll as `fail`.
    """

    TYPES: ClassVar[tuple[OpType, ...]] = (OpType.INVOKE, OpType.OK, OpType.FAIL)
    PROCESS: ClassVar[str] = "client-N"

    name: str = field(metadata=key("of the client's plan"))
    pid: int
    probe: str | None = field(default=None, metadata=key("on ok: the evidence that it is gone"))
    error: str = field(default="", metadata=key("on fail"))
