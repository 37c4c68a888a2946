"""Produce (api 0), v3 to v8: records come in as bytes and leave as batches with a valid header and CRC."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from targets.broker.core.messages import (
    Batch,
    ErrorCode,
    Payload,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from targets.broker.wire.scalars import (
    NULL_BYTES,
    NULL_TEXT,
    TOPIC_BYTES_MIN,
    Items,
    Pieces,
    by_topic,
    count_bytes,
    read_nullable_text,
    read_text,
    take,
    text_bytes,
)

# (batches, NONE, "") or ((), error, text): the log layer's validation of bytes, passed in by the caller.
SplitBatches: TypeAlias = Callable[[Payload], tuple[tuple[Batch, ...], ErrorCode, str]]

_ERROR_TEXT_MAX: Final = 1000

_ACKS: Final = struct.Struct(">hi")  # acks, timeout
_PARTITION: Final = struct.Struct(">ii")  # index, bytes of records
_RESULT: Final = struct.Struct(">ihqq")  # index, error, base offset, log append time
_NO_TIME: Final = -1
_NO_START: Final = struct.pack(">q", -1)
_NO_THROTTLE: Final = bytes(4)


def read_request(
    frame: Payload, at: int, _version: int, split: SplitBatches, items: Items
) -> tuple[ProduceRequest, int]:
    """
    Read a request: (request, offset after it); unsound records become the partition's error.

    So does naming a partition twice: which of the two were meant is not known.
    """
    _, at = read_nullable_text(frame, at)  # transactional id: unused here
    acks, timeout_ms = _ACKS.unpack_from(frame, at)
    partitions: dict[TopicPartition, ProducePartition] = {}
    topics, at = items.count(frame, at + _ACKS.size, "topic_data", TOPIC_BYTES_MIN)
    for _ in range(topics):
        topic, at = read_text(frame, at)
        count, at = items.count(frame, at, "partition_data", _PARTITION.size)
        for _ in range(count):
            index, size = _PARTITION.unpack_from(frame, at)
            records, at = take(frame, at + _PARTITION.size, 0 if size == NULL_BYTES else size)
            tp = TopicPartition(topic, index)
            partitions[tp] = _twice(tp) if tp in partitions else _read_partition(tp, records, split)
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, partitions=tuple(partitions.values())), at


def _read_partition(tp: TopicPartition, records: Payload, split: SplitBatches) -> ProducePartition:
    batches, error, text = split(records)
    return ProducePartition(tp=tp, batches=batches, error=error, error_text=text)


def _twice(tp: TopicPartition) -> ProducePartition:
    text = f"partition {tp} was named more than once; expected once in a request"
    return ProducePartition(tp=tp, batches=(), error=ErrorCode.INVALID_REQUEST, error_text=text)


def write_response(version: int, response: ProduceResponse) -> Pieces:
    """Write a response in that version."""
    topics = by_topic(response.results)
    written = bytearray(count_bytes(len(topics)))
    for topic, results in topics.items():
        written += text_bytes(topic) + count_bytes(len(results))
        for result in results:
            written += _RESULT.pack(result.tp.partition, result.error, result.base_offset, _NO_TIME)
            if version >= 5:
                written += _NO_START
            if version >= 8:
                text = result.error_text[:_ERROR_TEXT_MAX]
                written += count_bytes(0) + (text_bytes(text) if text else NULL_TEXT)
    written += _NO_THROTTLE
    return [bytes(written)]
