"""ListOffsets (api 2) and OffsetForLeaderEpoch (api 23), both sides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from targets.broker.core.messages import (
    EpochAnswer,
    EpochQuestion,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    TopicPartition,
)
from targets.broker.wire.entities import (
    NO_TIME,
    Schema,
    error_of,
    fill,
    kio_error,
    listed,
    topic_id_of,
    topics_of,
)
from targets.broker.wire.produce import SplitBatches
from targets.broker.wire.scalars import Placed

P = TypeVar("P", bound=Placed)

_READ_UNCOMMITTED: Final = 0


def read_list_request(entity: Any, _split: SplitBatches) -> ListOffsetsRequest:
    """Convert kio's entity to the core's request."""
    return ListOffsetsRequest(
        replica_id=entity.replica_id,
        partitions=once(
            ListOffsetsPartition(
                tp=TopicPartition(topic.name, partition.partition_index),
                timestamp=partition.timestamp,
                current_leader_epoch=getattr(partition, "current_leader_epoch", -1),
                topic_id=topic_id_of(partition),
            )
            for topic in listed(entity.topics, "topics")
            for partition in listed(topic.partitions, "partitions")
        ),
    )


def once(items: Iterable[P]) -> tuple[P, ...]:
    """Keep one entry for each partition, the last: a partition that is named twice is answered once."""
    return tuple({item.tp: item for item in items}.values())


def write_list_request(entity: Schema, request: ListOffsetsRequest) -> Any:
    """Convert the core's request to kio's entity of that version."""
    return fill(
        entity,
        replica_id=request.replica_id,
        isolation_level=_READ_UNCOMMITTED,
        topics=topics_of(
            entity,
            "topics",
            request.partitions,
            lambda asked: {
                "partition_index": asked.tp.partition,
                "current_leader_epoch": asked.current_leader_epoch,
                "timestamp": asked.timestamp,
                "topic_id": asked.topic_id,
            },
            name="name",
        ),
    )


def write_list_response(entity: Schema, response: ListOffsetsResponse) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return fill(
        entity,
        throttle_time=NO_TIME,
        topics=topics_of(
            entity,
            "topics",
            response.results,
            lambda result: {
                "partition_index": result.tp.partition,
                "error_code": kio_error(result.error),
                "timestamp": result.timestamp,
                "offset": result.offset,
                "leader_epoch": result.leader_epoch,
            },
            name="name",
        ),
    )


def read_list_response(entity: Any, _split: SplitBatches) -> ListOffsetsResponse:
    """Convert kio's entity to the core's response."""
    return ListOffsetsResponse(
        results=tuple(
            ListOffsetsResult(
                tp=TopicPartition(topic.name, partition.partition_index),
                error=error_of(partition.error_code),
                offset=partition.offset,
                timestamp=partition.timestamp,
                leader_epoch=getattr(partition, "leader_epoch", -1),
            )
            for topic in listed(entity.topics, "topics")
            for partition in listed(topic.partitions, "partitions")
        )
    )


def read_epoch_request(entity: Any, _split: SplitBatches) -> OffsetForLeaderEpochRequest:
    """Convert the entity to the core's questions (KIP-101, step 4.2)."""
    return OffsetForLeaderEpochRequest(
        replica_id=getattr(entity, "replica_id", -2),
        questions=once(
            EpochQuestion(
                tp=TopicPartition(topic.topic, partition.partition),
                leader_epoch=partition.leader_epoch,
                current_leader_epoch=getattr(partition, "current_leader_epoch", -1),
                topic_id=topic_id_of(partition),
            )
            for topic in listed(entity.topics, "topics")
            for partition in listed(topic.partitions, "partitions")
        ),
    )


def write_epoch_request(entity: Schema, request: OffsetForLeaderEpochRequest) -> Any:
    """Convert the core's questions to the entity of that version."""
    return fill(
        entity,
        replica_id=request.replica_id,
        topics=topics_of(
            entity,
            "topics",
            request.questions,
            lambda asked: {
                "partition": asked.tp.partition,
                "current_leader_epoch": asked.current_leader_epoch,
                "leader_epoch": asked.leader_epoch,
                "topic_id": asked.topic_id,
            },
            name="topic",
        ),
    )


def write_epoch_response(entity: Schema, response: OffsetForLeaderEpochResponse) -> Any:
    """Convert the core's answers (KIP-101, step 4.3) to the entity of that version."""
    return fill(
        entity,
        throttle_time=NO_TIME,
        topics=topics_of(
            entity,
            "topics",
            response.answers,
            lambda answer: {
                "error_code": kio_error(answer.error),
                "partition": answer.tp.partition,
                "leader_epoch": answer.leader_epoch,
                "end_offset": answer.end_offset,
            },
            name="topic",
        ),
    )


def read_epoch_response(entity: Any, _split: SplitBatches) -> OffsetForLeaderEpochResponse:
    """Convert the entity to the core's answers; a v0 answer has no epoch, which is -1."""
    return OffsetForLeaderEpochResponse(
        answers=tuple(
            EpochAnswer(
                tp=TopicPartition(topic.topic, partition.partition),
                error=error_of(partition.error_code),
                leader_epoch=getattr(partition, "leader_epoch", -1),
                end_offset=partition.end_offset,
            )
            for topic in listed(entity.topics, "topics")
            for partition in listed(topic.partitions, "partitions")
        )
    )
