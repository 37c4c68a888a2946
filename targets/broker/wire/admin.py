"""Metadata (api 3), CreateTopics (19), DeleteTopics (20) and CreatePartitions (37) of clients."""

from __future__ import annotations

from typing import Any, Final

from targets.broker.core.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    MetadataResponse,
    MorePartitions,
    NewTopic,
    PartitionMetadata,
    TopicErrors,
)
from targets.broker.wire.entities import NO_TIME, Schema, fill, item_type, kio_error, listed, ms_of
from targets.broker.wire.produce import SplitBatches

CLUSTER_ID: Final = "fencepost"
# Kafka's value for authorised operations that were not requested.
_NOT_ASKED: Final = -(2**31)
_ERROR_TEXT_MAX: Final = 1000


def read_metadata_request(entity: Any, _split: SplitBatches) -> MetadataRequest:
    """Convert kio's entity to the core's request; v0 requests all topics with an empty array, later with null."""
    if entity.topics is None or (entity.__version__ == 0 and not entity.topics):
        return MetadataRequest(topics=None)
    return MetadataRequest(topics=tuple(dict.fromkeys(topic.name for topic in entity.topics)))


def write_metadata_response(entity: Schema, response: MetadataResponse) -> Any:
    """Convert the core's response to kio's entity of that version."""
    broker_type = item_type(entity, "brokers")
    topic_type = item_type(entity, "topics")
    partition_type = item_type(topic_type, "partitions")
    return fill(
        entity,
        throttle_time=NO_TIME,
        brokers=tuple(
            fill(broker_type, node_id=broker.broker_id, host=broker.host, port=broker.port, rack=None)
            for broker in response.brokers
        ),
        cluster_id=CLUSTER_ID,
        controller_id=response.controller_id,
        topics=tuple(
            fill(
                topic_type,
                error_code=kio_error(topic.error),
                name=topic.topic,
                is_internal=False,
                partitions=tuple(_write_partition(partition_type, of) for of in topic.partitions),
                topic_authorized_operations=_NOT_ASKED,
            )
            for topic in response.topics
        ),
        cluster_authorized_operations=_NOT_ASKED,
    )


def _write_partition(entity: Schema, partition: PartitionMetadata) -> Any:
    return fill(
        entity,
        error_code=kio_error(partition.error),
        partition_index=partition.tp.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=(),
    )


def read_create_request(entity: Any, _split: SplitBatches) -> CreateTopicsRequest:
    """Convert kio's entity to the core's request."""
    return CreateTopicsRequest(
        topics=tuple(
            NewTopic(
                topic=topic.name,
                partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                assignments=tuple(
                    (assignment.partition_index, tuple(listed(assignment.broker_ids, "broker_ids")))
                    for assignment in listed(topic.assignments, "assignments")
                ),
                settings=tuple((each.name, each.value) for each in listed(topic.configs, "configs")),
            )
            for topic in listed(entity.topics, "topics")
        ),
        timeout_ms=ms_of(entity.timeout),
        validate_only=entity.validate_only,
    )


def read_partitions_request(entity: Any, _split: SplitBatches) -> CreatePartitionsRequest:
    """Convert kio's entity to the core's request."""
    return CreatePartitionsRequest(
        topics=tuple(
            MorePartitions(
                topic=topic.name,
                count=topic.count,
                assignments=None
                if topic.assignments is None
                else tuple(tuple(listed(each.broker_ids, "broker_ids")) for each in topic.assignments),
            )
            for topic in listed(entity.topics, "topics")
        ),
        timeout_ms=ms_of(entity.timeout),
        validate_only=entity.validate_only,
    )


def read_delete_request(entity: Any, _split: SplitBatches) -> DeleteTopicsRequest:
    """Convert kio's entity to the core's request."""
    return DeleteTopicsRequest(
        topics=tuple(listed(entity.topic_names, "topic_names")), timeout_ms=ms_of(entity.timeout)
    )


def write_create_response(entity: Schema, response: TopicErrors) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return _write_errors(entity, "topics", response)


def write_partitions_response(entity: Schema, response: TopicErrors) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return _write_errors(entity, "results", response)


def write_delete_response(entity: Schema, response: TopicErrors) -> Any:
    """Convert the core's response to kio's entity of that version."""
    return _write_errors(entity, "responses", response)


def _write_errors(entity: Schema, array: str, response: TopicErrors) -> Any:
    topic_type = item_type(entity, array)
    errors = tuple(
        fill(topic_type, name=topic, error_code=kio_error(error), error_message=text[:_ERROR_TEXT_MAX] or None)
        for topic, error, text in response.errors
    )
    return fill(entity, throttle_time=NO_TIME, **{array: errors})
