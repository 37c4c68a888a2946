"""
Messages between brokers, clients and controllers, as the core sees them.

The wire layer translates Kafka's bytes to and from these; the core never sees a byte of payload.
Each request has one version-free form: a field that a version lacks has Kafka's default.
Length:  one dataclass for each message and its parts, and no code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

Payload: TypeAlias = bytes | memoryview

# In place of a topic's id, which rises with every topic that is created: whoever says it knows of none.
NO_TOPIC_ID: Final = 0
# KIP-570: in place of a leader epoch, the replica is of a topic that is being deleted, whatever its epoch.
EPOCH_DURING_DELETE: Final = -2
# In place of a producer's id, epoch and sequence: the producer is not idempotent.
NO_PRODUCER_ID: Final = -1


# Of a fetch without a session, and the epochs of a fetch that begins none, or one (KIP-227).
NO_FETCH_SESSION: Final = 0
NO_SESSION_EPOCH: Final = -1
FIRST_SESSION_EPOCH: Final = 0


class ErrorCode(IntEnum):
    """Kafka's error codes that this broker sends or understands."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    STALE_CONTROLLER_EPOCH = 11
    COORDINATOR_LOAD_IN_PROGRESS = 14
    MESSAGE_TOO_LARGE = 10
    INVALID_TOPIC = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    KAFKA_STORAGE_ERROR = 56
    REASSIGNMENT_IN_PROGRESS = 60
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_RECORD = 87
    INCONSISTENT_TOPIC_ID = 103


class TopicPartition(NamedTuple):
    """One partition of a topic. A tuple, whose hash is fast: it is the key of most tables."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """
    A record batch's header, with its bytes as an opaque handle.

    Attributes:
        base_offset: first offset, inclusive, as stored (a producer's starts at 0).
        last_offset: last offset, inclusive.
        payload: the whole batch with its header; base offset (bytes 0-7) and leader epoch (12-15) lie
            outside its CRC.
        producer_id, producer_epoch, base_sequence: of an idempotent producer (KIP-98), NO_PRODUCER_ID of others.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    size: int
    payload: Payload
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_ID
    base_sequence: int = NO_PRODUCER_ID

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one."""
        return self.last_offset + 1


# --- produce -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ProducePartition:
    """Batches for one partition; the wire layer sets `error` when the bytes are not sound batches."""

    tp: TopicPartition
    batches: tuple[Batch, ...]
    error: ErrorCode = ErrorCode.NONE
    error_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest:
    """acks: 0 none, 1 leader, -1 all of the ISR."""

    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResult:
    """Where the records were appended; base_offset is -1 on error."""

    tp: TopicPartition
    error: ErrorCode
    base_offset: int = -1
    error_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse:
    """One result for every requested partition."""

    results: tuple[ProduceResult, ...]


# --- fetch -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """
    The offset to read from; current_leader_epoch is -1 where the version has none (before v9).

    topic_id is the follower's, NO_TOPIC_ID from clients and in versions before v12.
    """

    tp: TopicPartition
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    log_start_offset: int = -1
    topic_id: int = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """
    A fetch; replica_id is the follower's broker id, -1 for a consumer.

    One with a session epoch above FIRST_SESSION_EPOCH goes on with a session (KIP-227): its partitions are those
    that are new or changed since the fetch before, and `forgotten` those that leave. Any other names them all.
    """

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partitions: tuple[FetchPartition, ...]
    session_id: int = NO_FETCH_SESSION
    session_epoch: int = NO_SESSION_EPOCH
    forgotten: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """The batches read, all whole; the first may begin before the requested offset."""

    tp: TopicPartition
    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    batches: tuple[Batch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    """
    One result for every requested partition; within a session only for those that have news.

    session_id is the session in which the next fetch may go on, NO_FETCH_SESSION if there is none; `error` is why
    the whole request was refused.
    """

    results: tuple[FetchResult, ...]
    session_id: int = NO_FETCH_SESSION
    error: ErrorCode = ErrorCode.NONE


# --- list offsets ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    """timestamp -1 requests the latest offset, -2 the earliest."""

    tp: TopicPartition
    timestamp: int
    current_leader_epoch: int = -1
    topic_id: int = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    """replica_id is the follower's broker id (it sees the log end), -1 for a consumer (high watermark)."""

    replica_id: int
    partitions: tuple[ListOffsetsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResult:
    """
    offset is -1 when no record has that timestamp, or on error.

    timestamp is that of the batch that was found by time, else -1.
    """

    tp: TopicPartition
    error: ErrorCode
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse:
    """One result for every requested partition."""

    results: tuple[ListOffsetsResult, ...]


# --- offset for leader epoch -------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class EpochQuestion:
    """KIP-101 step 4.2: where does this epoch end? current_leader_epoch is -1 before v2."""

    tp: TopicPartition
    leader_epoch: int
    current_leader_epoch: int = -1
    topic_id: int = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """replica_id is -2 where the version has none (before v3)."""

    questions: tuple[EpochQuestion, ...]
    replica_id: int = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnswer:
    """KIP-101 step 4.3. end_offset -1: undefined. leader_epoch -1: undefined, or a v0 answer."""

    tp: TopicPartition
    error: ErrorCode
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    """One answer for every question."""

    answers: tuple[EpochAnswer, ...]


# --- controller to broker (V3's fields, and a controller epoch) --------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr:
    """V3's LeaderAndISR of one partition; leader -1: none. `replicas` is the assignment (AR)."""

    tp: TopicPartition
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    topic_id: int = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrRequest:
    """
    V3's LeaderAndISRRequest; controller_epoch fences a deposed controller (V3 has none).

    broker_epoch is the registration that the command is addressed to (KIP-380), -1 for any.
    """

    controller_id: int
    controller_epoch: int
    ack_timeout_ms: int
    is_init: bool
    partitions: tuple[LeaderAndIsr, ...]
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrResponse:
    """V3's responseMap: an error code for every partition; `error` is for the whole request."""

    error: ErrorCode
    errors: tuple[tuple[TopicPartition, ErrorCode], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplica:
    """A replica to stop and delete, of this topic, if its leader epoch is not newer (KIP-570, KIP-516)."""

    tp: TopicPartition
    leader_epoch: int = EPOCH_DURING_DELETE
    topic_id: int = NO_TOPIC_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaRequest:
    """V3's StopReplicaRequest; controller_epoch and broker_epoch as in LeaderAndIsrRequest."""

    controller_id: int
    controller_epoch: int
    ack_timeout_ms: int
    partitions: tuple[StopReplica, ...]
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaResponse:
    """V3's responseMap: an error code for every partition; `error` is for the whole request."""

    error: ErrorCode
    errors: tuple[tuple[TopicPartition, ErrorCode], ...]


# --- metadata and administration ---------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    """Metadata of these topics; None requests all."""

    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetadata:
    """A live broker and its client listener."""

    broker_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """A partition's leader and replicas; leader is -1 with LEADER_NOT_AVAILABLE when there is none."""

    tp: TopicPartition
    error: ErrorCode
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic and its partitions."""

    topic: str
    error: ErrorCode
    partitions: tuple[PartitionMetadata, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse:
    """The metadata that ZooKeeper holds; controller_id is -1 when there is no controller."""

    brokers: tuple[BrokerMetadata, ...]
    controller_id: int
    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """
    A topic to create.

    Attributes:
        partitions, replication_factor: how many, -1 for as many as the broker's settings say (KIP-464).
        assignments: partition -> replicas, () lets the broker place them.
        settings: its own, as (name, text).
    """

    topic: str
    partitions: int
    replication_factor: int
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    settings: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest:
    """Topics to create."""

    topics: tuple[NewTopic, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MorePartitions:
    """A topic that is to have so many partitions; assignments of the new ones, None lets the broker place them."""

    topic: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequest:
    """Topics that are to have more partitions."""

    topics: tuple[MorePartitions, ...]
    timeout_ms: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    """Topics to delete."""

    topics: tuple[str, ...]
    timeout_ms: int


# --- where replicas and leaders are -------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class WantedReplicas:
    """A partition that is to have these replicas, or None: what is under way for it is cancelled (KIP-455)."""

    tp: TopicPartition
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReassignmentsRequest:
    """Partitions to move to other replicas, or no longer to move."""

    partitions: tuple[WantedReplicas, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReassignmentsRequest:
    """The reassignments that are not over, of these partitions, or of all (None)."""

    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A partition's replicas now, those among them that are to come, and those that are to go."""

    tp: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentsResponse:
    """The answer to ListReassignmentsRequest; `error` is for the whole request."""

    error: ErrorCode
    reassignments: tuple[Reassignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    """
    Partitions whose preferred replica is to lead, or of all (None).

    Attributes:
        unclean: where there is no leader, elect the first replica that is alive, in the ISR or not (KIP-460).
    """

    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int
    unclean: bool = False


class PartitionError(NamedTuple):
    """What became of what was asked for one partition: an error code, and a text, "" for none."""

    tp: TopicPartition
    error: ErrorCode
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionErrors:
    """
    The answer to AlterReassignmentsRequest and ElectLeadersRequest, one for each partition.

    `error` is for the whole request.
    """

    error: ErrorCode
    errors: tuple[PartitionError, ...]


# --- deletion of records -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePartition:
    """Delete the records before an offset; -1: all that are committed (KIP-107)."""

    tp: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest:
    """Partitions whose oldest records are to be deleted."""

    partitions: tuple[DeletePartition, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult:
    """low_watermark is the smallest log start of the ISR, -1 on error."""

    tp: TopicPartition
    error: ErrorCode
    low_watermark: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponse:
    """One result for every requested partition."""

    results: tuple[DeleteResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicErrors:
    """The answer to CreateTopics, DeleteTopics and CreatePartitions: an error code and a text for every topic."""

    errors: tuple[tuple[str, ErrorCode, str], ...]
    deleting: bool = False


# --- what a broker tells of itself -------------------------------------------------------------------
class ConfigKind(IntEnum):
    """Kafka's types of a setting's value (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    LIST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    """A topic or a broker, by Kafka's number of its kind; keys None: all of its settings."""

    kind: int
    name: str
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest:
    """The resources whose settings are asked for; `synonyms`: also by which settings of the broker."""

    resources: tuple[ConfigResource, ...]
    synonyms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """
    One setting, as text.

    Attributes:
        is_default: whether the value is the broker's own default, and not its configuration file's or the topic's.
        synonym: the broker's setting that has decided it, or would without the topic's own, "" if that was not
            asked for.
        of_broker: the broker's value, where the topic has one of its own, else "".
        read_only: whether nobody can change it while the broker runs.
    """

    name: str
    value: str
    kind: ConfigKind
    is_default: bool
    synonym: str = ""
    of_broker: str = ""
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResult:
    """The settings of a resource, or why there are none."""

    kind: int
    name: str
    error: ErrorCode
    error_text: str = ""
    entries: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse:
    """One result for every requested resource."""

    results: tuple[ConfigResult, ...]


class AlterOperation(IntEnum):
    """Kafka's numbers of what is done to one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlteredSetting(NamedTuple):
    """What is to be done to one setting: an AlterOperation's number, which may be any that a client sends."""

    name: str
    value: str | None
    operation: int = AlterOperation.SET


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredResource:
    """A topic or a broker, by Kafka's number of its kind, with what is to be done to its settings."""

    kind: int
    name: str
    settings: tuple[AlteredSetting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequest:
    """Settings to alter; not `incremental`: a resource has no others of its own afterwards (AlterConfigs)."""

    resources: tuple[AlteredResource, ...]
    incremental: bool
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponse:
    """One result for every named resource, without its settings."""

    results: tuple[ConfigResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    """A producer asks for an id; a transactional one has an id of its own, which is not kept here."""

    transactional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    """A new producer's id and epoch, or why there is none."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    """The partitions whose logs are asked for; None requests all."""

    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSize:
    """The bytes of a log's files."""

    tp: TopicPartition
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    """The broker's only log directory, with those of its logs that were asked for."""

    path: str
    logs: tuple[LogSize, ...]


Request: TypeAlias = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | OffsetForLeaderEpochRequest
    | LeaderAndIsrRequest
    | StopReplicaRequest
    | MetadataRequest
    | CreateTopicsRequest
    | CreatePartitionsRequest
    | DeleteTopicsRequest
    | AlterReassignmentsRequest
    | ListReassignmentsRequest
    | ElectLeadersRequest
    | DeleteRecordsRequest
    | DescribeConfigsRequest
    | AlterConfigsRequest
    | DescribeLogDirsRequest
    | InitProducerIdRequest
)
Response: TypeAlias = (
    ProduceResponse
    | FetchResponse
    | ListOffsetsResponse
    | OffsetForLeaderEpochResponse
    | LeaderAndIsrResponse
    | StopReplicaResponse
    | MetadataResponse
    | TopicErrors
    | PartitionErrors
    | ReassignmentsResponse
    | DeleteRecordsResponse
    | DescribeConfigsResponse
    | AlterConfigsResponse
    | DescribeLogDirsResponse
    | InitProducerIdResponse
)
