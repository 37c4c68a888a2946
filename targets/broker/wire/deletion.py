"""DeleteRecords (api 21) of clients."""

from __future__ import annotations

from typing import Any

from targets.broker.core.messages import (
    DeletePartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    TopicPartition,
)
from targets.broker.wire.entities import NO_TIME, Schema, fill, kio_error, listed, ms_of, topics_of
from targets.broker.wire.offsets import once
from targets.broker.wire.produce import SplitBatches


def read_delete_records_request(entity: Any, _split: SplitBatches) -> DeleteRecordsRequest:
    """Convert kio's entity to the core's request; of a partition that is named twice the last one counts."""
    return DeleteRecordsRequest(
        partitions=once(
            DeletePartition(tp=TopicPartition(topic.name, partition.partition_index), offset=partition.offset)
            for topic in listed(entity.topics, "topics")
            for partition in listed(topic.partitions, "partitions")
        ),
        timeout_ms=max(0, ms_of(entity.timeout)),
    )


def write_delete_records_response(entity: Schema, response: DeleteRecordsResponse) -> Any:
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
                "low_watermark": result.low_watermark,
                "error_code": kio_error(result.error),
            },
            name="name",
        ),
    )
