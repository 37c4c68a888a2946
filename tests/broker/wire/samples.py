"""One request and one response of every kind, as the core's messages, with few fields at their defaults."""

from __future__ import annotations

from targets.broker.core import messages as m
from targets.broker.core.messages import ErrorCode, TopicPartition
from targets.broker.wire import versions
from tests.broker.log.batches import batch

A0, A1, B7 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 7)

ALTERED = m.AlterConfigsResponse(
    results=(
        m.ConfigResult(kind=2, name="a", error=ErrorCode.NONE),
        m.ConfigResult(kind=4, name="9", error=ErrorCode.INVALID_REQUEST, error_text="a broker"),
    )
)

# Between brokers: api key -> (request, its response).
PEER: dict[int, tuple[m.Request, m.Response]] = {
    versions.FETCH: (
        m.FetchRequest(
            replica_id=3,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            partitions=tuple(
                m.FetchPartition(
                    tp=tp,
                    fetch_offset=9,
                    max_bytes=77,
                    current_leader_epoch=4,
                    log_start_offset=2,
                    topic_id=2**40 + tp.partition,
                )
                for tp in (A0, A1, B7)
            ),
            session_id=5,
            session_epoch=0,
        ),
        m.FetchResponse(
            results=(
                m.FetchResult(
                    tp=A0,
                    error=ErrorCode.NONE,
                    high_watermark=11,
                    log_start_offset=2,
                    batches=(batch(base=9, count=2, epoch=4), batch(base=13, epoch=5, text=b"second")),
                ),
                m.FetchResult(tp=A1, error=ErrorCode.NONE, high_watermark=0, log_start_offset=0),
                m.FetchResult(tp=B7, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
            ),
            session_id=6,
        ),
    ),
    versions.LIST_OFFSETS: (
        m.ListOffsetsRequest(
            replica_id=3,
            partitions=(
                m.ListOffsetsPartition(tp=A0, timestamp=-1, current_leader_epoch=4, topic_id=2**40),
                m.ListOffsetsPartition(tp=B7, timestamp=-2, current_leader_epoch=0),
            ),
        ),
        m.ListOffsetsResponse(
            results=(
                m.ListOffsetsResult(tp=A0, error=ErrorCode.NONE, offset=12, timestamp=2**41, leader_epoch=4),
                m.ListOffsetsResult(tp=B7, error=ErrorCode.FENCED_LEADER_EPOCH),
            )
        ),
    ),
    versions.OFFSET_FOR_LEADER_EPOCH: (
        m.OffsetForLeaderEpochRequest(
            questions=(
                m.EpochQuestion(tp=A0, leader_epoch=0, current_leader_epoch=4, topic_id=2**40),
                m.EpochQuestion(tp=B7, leader_epoch=1, current_leader_epoch=0),
            ),
            replica_id=3,
        ),
        m.OffsetForLeaderEpochResponse(
            answers=(
                m.EpochAnswer(tp=A0, error=ErrorCode.NONE, leader_epoch=0, end_offset=21),
                m.EpochAnswer(tp=B7, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            )
        ),
    ),
    versions.LEADER_AND_ISR: (
        m.LeaderAndIsrRequest(
            controller_id=2,
            controller_epoch=5,
            ack_timeout_ms=1500,
            is_init=True,
            broker_epoch=2**40,
            partitions=(
                m.LeaderAndIsr(
                    tp=A0, leader=1, leader_epoch=3, isr=(1, 2), zk_version=8, replicas=(2, 1), topic_id=2**40
                ),
                m.LeaderAndIsr(tp=B7, leader=-1, leader_epoch=4, isr=(), zk_version=0, replicas=(3,)),
            ),
        ),
        m.LeaderAndIsrResponse(
            error=ErrorCode.STALE_CONTROLLER_EPOCH,
            errors=((A0, ErrorCode.NONE), (B7, ErrorCode.KAFKA_STORAGE_ERROR)),
        ),
    ),
    versions.STOP_REPLICA: (
        m.StopReplicaRequest(
            controller_id=2,
            controller_epoch=5,
            ack_timeout_ms=1500,
            broker_epoch=2**40,
            partitions=(m.StopReplica(tp=A0, topic_id=2**33), m.StopReplica(tp=B7, leader_epoch=4, topic_id=7)),
        ),
        m.StopReplicaResponse(error=ErrorCode.NONE, errors=((B7, ErrorCode.NONE),)),
    ),
}

# Responses to clients.
CLIENT_RESPONSES: dict[int, m.Response] = {
    versions.PRODUCE: m.ProduceResponse(
        results=(
            m.ProduceResult(tp=A0, error=ErrorCode.NONE, base_offset=40),
            m.ProduceResult(tp=B7, error=ErrorCode.CORRUPT_MESSAGE, error_text="crc"),
        )
    ),
    versions.METADATA: m.MetadataResponse(
        brokers=(m.BrokerMetadata(broker_id=1, host="h", port=9), m.BrokerMetadata(broker_id=2, host="i", port=8)),
        controller_id=2,
        topics=(
            m.TopicMetadata(
                topic="a",
                error=ErrorCode.NONE,
                partitions=(
                    m.PartitionMetadata(
                        tp=A0, error=ErrorCode.NONE, leader=1, leader_epoch=6, replicas=(1, 2), isr=(1,)
                    ),
                    m.PartitionMetadata(
                        tp=A1,
                        error=ErrorCode.LEADER_NOT_AVAILABLE,
                        leader=-1,
                        leader_epoch=7,
                        replicas=(2,),
                        isr=(2,),
                    ),
                ),
            ),
            m.TopicMetadata(topic="gone", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ),
    ),
    versions.CREATE_TOPICS: m.TopicErrors(
        errors=(("a", ErrorCode.NONE, ""), ("b", ErrorCode.TOPIC_ALREADY_EXISTS, "there"))
    ),
    versions.DELETE_TOPICS: m.TopicErrors(
        errors=(("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not there"),), deleting=True
    ),
    versions.DELETE_RECORDS: m.DeleteRecordsResponse(
        results=(
            m.DeleteResult(tp=m.TopicPartition("a", 0), error=ErrorCode.NONE, low_watermark=7),
            m.DeleteResult(tp=m.TopicPartition("b", 1), error=ErrorCode.OFFSET_OUT_OF_RANGE),
        )
    ),
    versions.CREATE_PARTITIONS: m.TopicErrors(
        errors=(("a", ErrorCode.NONE, ""), ("b", ErrorCode.INVALID_PARTITIONS, "too few"))
    ),
    versions.ELECT_LEADERS: m.PartitionErrors(
        error=ErrorCode.NONE,
        errors=(
            m.PartitionError(A0, ErrorCode.NONE),
            m.PartitionError(A1, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "away"),
        ),
    ),
    versions.ALTER_PARTITION_REASSIGNMENTS: m.PartitionErrors(
        error=ErrorCode.NONE,
        errors=(
            m.PartitionError(A0, ErrorCode.NONE),
            m.PartitionError(B7, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "not moved"),
        ),
    ),
    versions.LIST_PARTITION_REASSIGNMENTS: m.ReassignmentsResponse(
        error=ErrorCode.NONE,
        reassignments=(m.Reassignment(tp=A1, replicas=(1, 2, 3), adding=(3,), removing=(1,)),),
    ),
    versions.DESCRIBE_CONFIGS: m.DescribeConfigsResponse(
        results=(
            m.ConfigResult(
                kind=2,
                name="a",
                error=ErrorCode.NONE,
                entries=(
                    m.ConfigEntry(
                        name="retention.ms",
                        value="7",
                        kind=m.ConfigKind.LONG,
                        is_default=False,
                        synonym="log.retention.ms",
                    ),
                    m.ConfigEntry(
                        name="min.insync.replicas",
                        value="2",
                        kind=m.ConfigKind.INT,
                        is_default=False,
                        synonym="min.insync.replicas",
                        of_broker="1",
                        read_only=False,
                    ),
                ),
            ),
            m.ConfigResult(kind=4, name="9", error=ErrorCode.INVALID_REQUEST, error_text="another broker"),
        )
    ),
    versions.ALTER_CONFIGS: ALTERED,
    versions.INCREMENTAL_ALTER_CONFIGS: ALTERED,
    versions.INIT_PRODUCER_ID: m.InitProducerIdResponse(error=ErrorCode.NONE, producer_id=2**40, producer_epoch=3),
    versions.DESCRIBE_LOG_DIRS: m.DescribeLogDirsResponse(
        path="/data", logs=(m.LogSize(tp=A0, size=70), m.LogSize(tp=B7, size=2**40))
    ),
}
