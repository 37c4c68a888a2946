"""
Fetch (api 1), v4 to v12, both sides: clients' and followers' requests, the leader's answers.

v12 is for followers alone: flexible (KIP-482), with the topic's id in a tagged field; its requests are kio's.
No transactions: the last stable offset is the high watermark, no transaction was aborted.
Source:  Kafka's FetchRequest.json and FetchResponse.json; KIP-227 (sessions), KIP-320 (current leader epoch).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from kio.schema.types import TopicName
from kio.static.primitive import i32

from targets.broker.core.messages import (
    NO_FETCH_SESSION,
    NO_SESSION_EPOCH,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    Payload,
    TopicPartition,
)
from targets.broker.core.sessions import is_full
from targets.broker.wire.bounds import check_items
from targets.broker.wire.entities import (
    error_of,
    fill,
    listed,
    ms_of,
    read_entity,
    request_type,
    topic_id_of,
    topics_of,
)
from targets.broker.wire.produce import SplitBatches
from targets.broker.wire.scalars import (
    NO_TAGS,
    NULL_BYTES,
    TOPIC_BYTES_MIN,
    Items,
    Pieces,
    WireError,
    by_topic,
    compact_text_bytes,
    count_bytes,
    read_compact_text,
    read_text,
    read_varint,
    skip_tags,
    take,
    text_bytes,
    unlimited,
    varint_bytes,
)
from targets.broker.wire.schema.identity import ForgottenTopic
from targets.broker.wire.versions import FETCH
from targets.broker.wire.writing import entity_bytes

_READ_UNCOMMITTED: Final = 0
# The epoch of the last record fetched, with which a leader would answer where logs diverge (KIP-595).
_NO_EPOCH: Final = -1

# The first versions with these fields.
_START: Final = 5
_SESSION: Final = 7
_EPOCH: Final = 9
_RACK: Final = 11
_FLEXIBLE: Final = 12

_LIMITS: Final = struct.Struct(">iiiib")  # replica id, wait, least and most bytes, isolation level
_SESSIONS: Final = struct.Struct(">ii")  # id, epoch
_INT: Final = struct.Struct(">i")
_SIZE: Final = struct.Struct(">i")
_THROTTLED: Final = struct.Struct(">i")
_WHOLE: Final = struct.Struct(">hi")  # error, session id
_RESULT: Final = struct.Struct(">ihqq")  # partition, error, high watermark, last stable offset
_LOG_START: Final = struct.Struct(">q")
_ABORTED: Final = struct.Struct(">qq")  # producer id, first offset


def _asked(version: int) -> struct.Struct:
    """Return the layout of a requested partition: index, [epoch,] offset, [log start,] most bytes."""
    return struct.Struct(f">i{'i' if version >= _EPOCH else ''}q{'q' if version >= _START else ''}i")


_ASKED: Final = {version: _asked(version) for version in range(4, 12)}


# --- requests --------------------------------------------------------------------------------------------------
def read_request(frame: Payload, at: int, version: int, items: Items) -> tuple[FetchRequest, int]:
    """Read a request: (request, offset after it); of a partition named twice the last entry holds, as in Kafka."""
    if version >= _FLEXIBLE:
        return _read_flexible(frame, at, version, items)
    replica_id, max_wait_ms, min_bytes, max_bytes, _ = _LIMITS.unpack_from(frame, at)
    at += _LIMITS.size
    session = NO_FETCH_SESSION, NO_SESSION_EPOCH
    if version >= _SESSION:
        session, at = _SESSIONS.unpack_from(frame, at), at + _SESSIONS.size
    partitions: dict[TopicPartition, FetchPartition] = {}
    topics, at = items.count(frame, at, "topics", TOPIC_BYTES_MIN)
    for _ in range(topics):
        topic, at = read_text(frame, at)
        count, at = items.count(frame, at, "partitions", _ASKED[version].size)
        for _ in range(count):
            asked = _read_asked(frame, at, version, topic)
            partitions[asked.tp] = asked
            at += _ASKED[version].size
    forgotten: tuple[TopicPartition, ...] = ()
    if version >= _SESSION:
        forgotten, at = _read_forgotten(frame, at, items)
    if version >= _RACK:
        _, at = read_text(frame, at)
    request = FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        partitions=tuple(partitions.values()),
        session_id=session[0],
        session_epoch=session[1],
        forgotten=forgotten,
    )
    return request, at


def _read_flexible(frame: Payload, at: int, version: int, items: Items) -> tuple[FetchRequest, int]:
    entity_type = request_type(FETCH, version)
    check_items(entity_type, frame, at, items)
    entity, end = read_entity(entity_type, frame, at)
    partitions = (
        FetchPartition(
            tp=TopicPartition(topic.topic, asked.partition),
            fetch_offset=asked.fetch_offset,
            max_bytes=asked.partition_max_bytes,
            current_leader_epoch=asked.current_leader_epoch,
            log_start_offset=asked.log_start_offset,
            topic_id=topic_id_of(asked),
        )
        for topic in listed(entity.topics, "topics")
        for asked in listed(topic.partitions, "partitions")
    )
    request = FetchRequest(
        replica_id=entity.replica_id,
        max_wait_ms=ms_of(entity.max_wait),
        min_bytes=entity.min_bytes,
        max_bytes=entity.max_bytes,
        partitions=tuple({asked.tp: asked for asked in partitions}.values()),
        session_id=entity.session_id,
        session_epoch=entity.session_epoch,
        forgotten=tuple(
            TopicPartition(topic.topic, index)
            for topic in listed(entity.forgotten_topics_data, "forgotten_topics_data")
            for index in listed(topic.partitions, "partitions")
        ),
    )
    return request, end


def _read_asked(frame: Payload, at: int, version: int, topic: str) -> FetchPartition:
    index, *values, max_bytes = _ASKED[version].unpack_from(frame, at)
    epoch = values.pop(0) if version >= _EPOCH else -1
    return FetchPartition(
        tp=TopicPartition(topic, index),
        fetch_offset=values[0],
        max_bytes=max_bytes,
        current_leader_epoch=epoch,
        log_start_offset=values[1] if version >= _START else -1,
    )


def _read_forgotten(frame: Payload, at: int, items: Items) -> tuple[tuple[TopicPartition, ...], int]:
    forgotten: list[TopicPartition] = []
    topics, at = items.count(frame, at, "forgotten_topics_data", TOPIC_BYTES_MIN)
    for _ in range(topics):
        topic, at = read_text(frame, at)
        count, at = items.count(frame, at, "partitions", _INT.size)
        indexes, at = take(frame, at, count * _INT.size)
        forgotten += [TopicPartition(topic, index) for (index,) in _INT.iter_unpack(indexes)]
    return tuple(forgotten), at


def write_request(version: int, request: FetchRequest) -> bytes:
    """
    Write a request in that version.

    Raises:
        WireError: the version has no sessions, and the request goes on with one.
    """
    if version < _SESSION and not is_full(request):
        raise WireError(f"session epoch {request.session_epoch} in v{version}; expected v{_SESSION} or later")
    if version >= _FLEXIBLE:
        return _flexible_bytes(version, request)
    limits = (request.replica_id, request.max_wait_ms, request.min_bytes, request.max_bytes)
    written = bytearray(_LIMITS.pack(*limits, _READ_UNCOMMITTED))
    if version >= _SESSION:
        written += _SESSIONS.pack(request.session_id, request.session_epoch)
    topics = by_topic(request.partitions)
    written += count_bytes(len(topics))
    for topic, partitions in topics.items():
        written += text_bytes(topic) + count_bytes(len(partitions))
        for asked in partitions:
            epoch = (asked.current_leader_epoch,) if version >= _EPOCH else ()
            start = (asked.log_start_offset,) if version >= _START else ()
            written += _ASKED[version].pack(
                asked.tp.partition, *epoch, asked.fetch_offset, *start, asked.max_bytes
            )
    if version >= _SESSION:
        leaving = _indexes_by_topic(request.forgotten)
        written += count_bytes(len(leaving))
        for topic, indexes in leaving.items():
            written += text_bytes(topic) + count_bytes(len(indexes)) + b"".join(map(_INT.pack, indexes))
    if version >= _RACK:
        written += text_bytes("")
    return bytes(written)


def _indexes_by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for tp in tps:
        indexes.setdefault(tp.topic, []).append(tp.partition)
    return indexes


def _flexible_bytes(version: int, request: FetchRequest) -> bytes:
    entity = request_type(FETCH, version)
    sent = fill(
        entity,
        replica_id=request.replica_id,
        max_wait=timedelta(milliseconds=request.max_wait_ms),
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=_READ_UNCOMMITTED,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=topics_of(
            entity,
            "topics",
            request.partitions,
            lambda asked: {
                "partition": asked.tp.partition,
                "current_leader_epoch": asked.current_leader_epoch,
                "fetch_offset": asked.fetch_offset,
                "last_fetched_epoch": _NO_EPOCH,
                "log_start_offset": asked.log_start_offset,
                "partition_max_bytes": asked.max_bytes,
                "topic_id": asked.topic_id,
            },
            name="topic",
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic=TopicName(topic), partitions=tuple(map(i32, indexes)))
            for topic, indexes in _indexes_by_topic(request.forgotten).items()
        ),
        rack_id="",
    )
    return entity_bytes(sent)


# --- responses -------------------------------------------------------------------------------------------------
def write_response(version: int, response: FetchResponse) -> Pieces:
    """Write a response in that version, in pieces: batches' bytes are not copied."""
    pieces: Pieces = []
    written = bytearray(_THROTTLED.pack(0))
    if version >= _SESSION:
        written += _WHOLE.pack(response.error, response.session_id)
    topics = by_topic(response.results)
    flexible = version >= _FLEXIBLE
    text, count = (compact_text_bytes, _more) if flexible else (text_bytes, count_bytes)
    tags = NO_TAGS if flexible else b""
    written += count(len(topics))
    for topic, results in topics.items():
        written += text(topic) + count(len(results))
        for result in results:
            written += _result_bytes(version, result)
            if result.batches:
                pieces += (bytes(written), *(batch.payload for batch in result.batches))
                written = bytearray()
            written += tags
        written += tags
    written += tags
    return [*pieces, bytes(written)] if written else pieces


def _more(count: int) -> bytes:
    """Write a length of the flexible encoding: one more than it is, as 0 means null."""
    return varint_bytes(count + 1)


def _result_bytes(version: int, result: FetchResult) -> bytes:
    high_watermark = result.high_watermark
    written = _RESULT.pack(result.tp.partition, result.error, high_watermark, high_watermark)
    if version >= _START:
        written += _LOG_START.pack(result.log_start_offset)
    flexible = version >= _FLEXIBLE
    written += _more(0) if flexible else count_bytes(0)
    if version >= _RACK:
        written += _INT.pack(-1)
    size = sum(batch.size for batch in result.batches)
    return written + (_more(size) if flexible else _SIZE.pack(size))


def read_response(frame: Payload, at: int, version: int, split: SplitBatches) -> tuple[FetchResponse, int]:
    """
    Read a response: (response, offset after it); unsound batches become the partition's error.

    Source:  Kafka, AbstractFetcherThread: a follower backs off and asks again when a CRC does not hold.
    """
    _THROTTLED.unpack_from(frame, at)
    at += _THROTTLED.size
    error, session_id = ErrorCode.NONE, NO_FETCH_SESSION
    if version >= _SESSION:
        code, session_id = _WHOLE.unpack_from(frame, at)
        error, at = error_of(code), at + _WHOLE.size
    results: list[FetchResult] = []
    items = unlimited(frame)
    flexible = version >= _FLEXIBLE
    read_count, read_name = (items.count_compact, read_compact_text) if flexible else (items.count, read_text)
    topics, at = read_count(frame, at, "responses", 1 if flexible else TOPIC_BYTES_MIN)
    for _ in range(topics):
        topic, at = read_name(frame, at)
        count, at = read_count(frame, at, "partitions", _RESULT.size)
        for _ in range(count):
            result, at = _read_result(frame, at, version, topic, split)
            results.append(result)
        at = skip_tags(frame, at) if flexible else at
    at = skip_tags(frame, at) if flexible else at
    return FetchResponse(results=tuple(results), session_id=session_id, error=error), at


def _read_result(
    frame: Payload, at: int, version: int, topic: str, split: SplitBatches
) -> tuple[FetchResult, int]:
    index, code, high_watermark, _ = _RESULT.unpack_from(frame, at)
    at += _RESULT.size
    log_start_offset = -1
    if version >= _START:
        (log_start_offset,) = _LOG_START.unpack_from(frame, at)
        at += _LOG_START.size
    aborted, at = _read_length(frame, at, version)
    _, at = take(frame, at, aborted * (_ABORTED.size + (version >= _FLEXIBLE)))
    if version >= _RACK:
        _INT.unpack_from(frame, at)
        at += _INT.size
    size, at = _read_length(frame, at, version)
    records, at = take(frame, at, size)
    at = skip_tags(frame, at) if version >= _FLEXIBLE else at
    batches, damage, _ = split(records)
    result = FetchResult(
        tp=TopicPartition(topic, index),
        error=error_of(code) or damage,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        batches=batches,
    )
    return result, at


def _read_length(frame: Payload, at: int, version: int) -> tuple[int, int]:
    """Read the length of an array or of bytes, 0 for null; a negative one is refused where it is used."""
    if version >= _FLEXIBLE:
        more, at = read_varint(frame, at)
        return max(0, more - 1), at
    (length,) = _SIZE.unpack_from(frame, at)
    return 0 if length == NULL_BYTES else length, at + _SIZE.size
