"""
Read brokers' answers to clients, by hand: nothing here is the code that wrote them.

A reader takes a cursor at the answer's first byte after the correlation id, and the version of its request. Only
versions without flexible encoding are asked for. An answer is read to its last byte, and an array that may not be
null is refused if it is.

Raises:
    Unreadable: the bytes do not have this layout, or hold an error code that Kafka does not have.

Source:  Apache Kafka, clients/src/main/resources/common/message/*Response.json.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from harness.workload.plan import Place
from targets.kafka_family.wire.cursor import Cursor
from targets.kafka_family.wire.errors import ErrorCode
from targets.kafka_family.wire.frames import Unreadable

T = TypeVar("T")

_BYTE: Final = struct.Struct(">b")
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
# Of a partition: number, error, base offset, the time of its append; from v5 on where its log starts.
_PRODUCED: Final = struct.Struct(">ihqq")
_PRODUCED_V5: Final = struct.Struct(">ihqqq")
# Of a partition: number, error, high watermark, last stable offset, where its log starts.
_FETCHED: Final = struct.Struct(">ihqqq")
_ABORTED: Final = struct.Struct(">qq")  # producer id, first offset
_SESSION: Final = struct.Struct(">hi")  # error, session id
_LISTED: Final = struct.Struct(">ihqq")  # partition, error, time, offset
_LEADER: Final = struct.Struct(">hii")  # error, partition, leader
_DELETED: Final = struct.Struct(">iqh")  # partition, low watermark, error
_PRODUCER: Final = struct.Struct(">hqh")  # error, id, epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """Where the records were appended; base_offset is -1 on error."""

    error: ErrorCode
    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """
    The bytes of whole batches; the first may begin before the requested offset.

    log_start is -1 where a broker does not tell, as Apache Kafka's beside an error.
    """

    error: ErrorCode
    high_watermark: int
    log_start: int
    records: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The offset that was asked for, -1 if there is none."""

    error: ErrorCode
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """The broker id of a partition's leader, -1 for none."""

    error: ErrorCode
    leader: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic's partitions by their numbers."""

    error: ErrorCode
    partitions: Mapping[int, PartitionMetadata]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """
    What a broker believes of the cluster.

    Attributes:
        addresses: broker id -> "host:port" of each live broker.
        controller: its broker id, -1 for none.
    """

    addresses: Mapping[int, str]
    controller: int
    topics: Mapping[str, TopicMetadata]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The answer about one topic that was to change; the text is the broker's, and may be empty."""

    error: ErrorCode
    text: str = ""

    @property
    def refusal(self) -> str:
        """The error in words, "" for none."""
        return "" if self.error is ErrorCode.NONE else f"{self.error.name}, {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The answer to a deletion of records; low_watermark is -1 on error."""

    error: ErrorCode
    low_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerId:
    """The id and epoch of an idempotent producer."""

    error: ErrorCode
    number: int
    epoch: int


def api_versions(cursor: Cursor, _version: int) -> ErrorCode:
    """Read the error of ApiVersions v0; the ranges after it are for the client that asks for them."""
    return _error(cursor.take(_SHORT)[0])


def produced(cursor: Cursor, version: int) -> dict[Place, Produced]:
    """Read Produce v3 to v7."""
    layout = _PRODUCED_V5 if version >= 5 else _PRODUCED

    def one(topic: str) -> tuple[Place, Produced]:
        partition, error, base, *_ = cursor.take(layout)
        return Place(topic, partition), Produced(error=_error(error), base_offset=base)

    found = _by_place(cursor, one)
    _throttle(cursor)
    return found


def fetched(cursor: Cursor, version: int) -> dict[Place, Fetched]:
    """Read Fetch v5 to v10."""
    _throttle(cursor)
    if version >= 7:
        cursor.take(_SESSION)

    def one(topic: str) -> tuple[Place, Fetched]:
        partition, error, high_watermark, _, log_start = cursor.take(_FETCHED)
        for _ in range(cursor.count()):
            cursor.take(_ABORTED)
        found = Fetched(
            error=_error(error), high_watermark=high_watermark, log_start=log_start, records=cursor.data()
        )
        return Place(topic, partition), found

    return _by_place(cursor, one)


def listed(cursor: Cursor, _version: int) -> dict[Place, Listed]:
    """Read ListOffsets v1."""

    def one(topic: str) -> tuple[Place, Listed]:
        partition, error, _, offset = cursor.take(_LISTED)
        return Place(topic, partition), Listed(error=_error(error), offset=offset)

    return _by_place(cursor, one)


def metadata(cursor: Cursor, version: int) -> Metadata:
    """Read Metadata v1 to v4."""
    if version >= 3:
        _throttle(cursor)
    addresses: dict[int, str] = {}
    for _ in range(cursor.items()):
        (broker,) = cursor.take(_INT)
        host, (port,) = cursor.text(), cursor.take(_INT)
        addresses[broker] = f"{host}:{port}"
        cursor.nullable_text()  # rack
    if version >= 2:
        cursor.nullable_text()  # cluster id
    (controller,) = cursor.take(_INT)
    return Metadata(addresses=addresses, controller=controller, topics=dict(_topics(cursor)))


def _topics(cursor: Cursor) -> Iterator[tuple[str, TopicMetadata]]:
    for _ in range(cursor.items()):
        (error,) = cursor.take(_SHORT)
        name = cursor.text()
        cursor.take(_BYTE)  # whether it is internal
        partitions: dict[int, PartitionMetadata] = {}
        for _ in range(cursor.items()):
            its_error, partition, leader = cursor.take(_LEADER)
            cursor.numbers()  # replicas
            cursor.numbers()  # in sync
            partitions[partition] = PartitionMetadata(error=_error(its_error), leader=leader)
        yield name, TopicMetadata(error=_error(error), partitions=partitions)


def created(cursor: Cursor, _version: int) -> dict[str, Changed]:
    """Read CreateTopics v2, or CreatePartitions v0, by topic."""
    _throttle(cursor)

    def one() -> tuple[str, Changed]:
        topic, (error,) = cursor.text(), cursor.take(_SHORT)
        return topic, Changed(error=_error(error), text=cursor.nullable_text() or "")

    return _once(one() for _ in range(cursor.items()))


def deleted_topics(cursor: Cursor, _version: int) -> dict[str, Changed]:
    """Read DeleteTopics v1, by topic."""
    _throttle(cursor)

    def one() -> tuple[str, Changed]:
        topic, (error,) = cursor.text(), cursor.take(_SHORT)
        return topic, Changed(error=_error(error))

    return _once(one() for _ in range(cursor.items()))


def altered(cursor: Cursor, _version: int) -> dict[str, Changed]:
    """Read AlterConfigs v0, by the name of the resource."""
    _throttle(cursor)

    def one() -> tuple[str, Changed]:
        (error,) = cursor.take(_SHORT)
        text = cursor.nullable_text() or ""
        cursor.take(_BYTE)  # the kind of resource
        return cursor.text(), Changed(error=_error(error), text=text)

    return _once(one() for _ in range(cursor.items()))


def deleted_records(cursor: Cursor, _version: int) -> dict[Place, Deleted]:
    """Read DeleteRecords v0."""
    _throttle(cursor)

    def one(topic: str) -> tuple[Place, Deleted]:
        partition, low_watermark, error = cursor.take(_DELETED)
        return Place(topic, partition), Deleted(error=_error(error), low_watermark=low_watermark)

    return _by_place(cursor, one)


def producer_id(cursor: Cursor, _version: int) -> ProducerId:
    """Read InitProducerId v0."""
    _throttle(cursor)
    error, number, epoch = cursor.take(_PRODUCER)
    return ProducerId(error=_error(error), number=number, epoch=epoch)


def _by_place(cursor: Cursor, one: Callable[[str], tuple[Place, T]]) -> dict[Place, T]:
    """Read an array of topics, each with an array of partitions."""

    def each() -> Iterator[tuple[Place, T]]:
        for _ in range(cursor.items()):
            topic = cursor.text()
            for _ in range(cursor.items()):
                yield one(topic)

    return _once(each())


K = TypeVar("K")


def _once(items: Iterator[tuple[K, T]]) -> dict[K, T]:
    """Return the items by their keys, each of which an answer may have only once."""
    found: dict[K, T] = {}
    for key, item in items:
        if key in found:
            raise Unreadable(f"two entries for {key}; expected one")
        found[key] = item
    return found


def _throttle(cursor: Cursor) -> None:
    cursor.take(_INT)


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError as error:
        raise Unreadable(f"error {code}; expected one of Kafka's codes") from error
