"""
Fetch v12, ListOffsets v6, OffsetForLeaderEpoch v4 between brokers: Kafka's, with the topic's id in a tagged field.

These are Kafka's first flexible versions (KIP-482), whose tagged fields others skip. Kafka itself names topics by
their ids from Fetch v13 on (KIP-516); here the names stay, so that what watches the links can read them.
Source:  Kafka's FetchRequest.json, ListOffsetsRequest.json, OffsetForLeaderEpochRequest.json; KIP-482, KIP-516.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.request_header.v2 import RequestHeader
from kio.schema.types import BrokerId, TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

# Far from the tags that Kafka may give away.
TOPIC_ID_TAG = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """An offset to read from."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(12)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(1)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    partition: i32 = field(metadata={"kafka_type": "int32"})
    current_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    fetch_offset: i64 = field(metadata={"kafka_type": "int64"})
    last_fetched_epoch: i32 = field(metadata={"kafka_type": "int32"})
    log_start_offset: i64 = field(metadata={"kafka_type": "int64"})
    partition_max_bytes: i32 = field(metadata={"kafka_type": "int32"})
    topic_id: i64 = field(metadata={"kafka_type": "int64", "tag": TOPIC_ID_TAG}, default=i64(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTopic:
    """A topic's partitions."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(12)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(1)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[FetchPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTopic:
    """Partitions that leave a fetch session (KIP-227)."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(12)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(1)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """Request v12."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(12)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(1)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    replica_id: BrokerId = field(metadata={"kafka_type": "int32"})
    max_wait: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    min_bytes: i32 = field(metadata={"kafka_type": "int32"})
    max_bytes: i32 = field(metadata={"kafka_type": "int32"})
    isolation_level: i8 = field(metadata={"kafka_type": "int8"})
    session_id: i32 = field(metadata={"kafka_type": "int32"})
    session_epoch: i32 = field(metadata={"kafka_type": "int32"})
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...]
    rack_id: str = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    """A time whose offset is asked for."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(6)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(2)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    current_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    timestamp: i64 = field(metadata={"kafka_type": "int64"})
    topic_id: i64 = field(metadata={"kafka_type": "int64", "tag": TOPIC_ID_TAG}, default=i64(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    """A topic's questions."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(6)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(2)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    name: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[ListOffsetsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    """Request v6."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(6)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(2)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    replica_id: BrokerId = field(metadata={"kafka_type": "int32"})
    isolation_level: i8 = field(metadata={"kafka_type": "int8"})
    topics: tuple[ListOffsetsTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderPartition:
    """A partition and the epoch whose end is asked for."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(4)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(23)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    partition: i32 = field(metadata={"kafka_type": "int32"})
    current_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    topic_id: i64 = field(metadata={"kafka_type": "int64", "tag": TOPIC_ID_TAG}, default=i64(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic:
    """A topic's questions."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(4)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(23)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[OffsetForLeaderPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """Request v4."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(4)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(23)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    replica_id: BrokerId = field(metadata={"kafka_type": "int32"})
    topics: tuple[OffsetForLeaderTopic, ...]
