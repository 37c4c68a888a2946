"""Kafka's wire format for tests: written by kio where it has the message, by hand where it has not."""

from __future__ import annotations

import importlib
import io
import struct
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kio.serial import entity_writer

TOPIC_ID = "00112233445566778899aabbccddeeff"


def frame(payload: bytes) -> bytes:
    """Return a frame: the payload with its length in front."""
    return struct.pack(">i", len(payload)) + payload


def request(
    api_key: int, version: int, correlation: int, client_id: str | None, body: bytes = b"", *, tags: bytes = b""
) -> bytes:
    """Return a request's frame; tags are the header's tagged fields, for flexible versions."""
    client = struct.pack(">h", -1) if client_id is None else text(client_id)
    return frame(struct.pack(">hhi", api_key, version, correlation) + client + tags + body)


def answer(correlation: int, body: bytes = b"") -> bytes:
    """Return an answer's frame."""
    return frame(struct.pack(">i", correlation) + body)


def fetch(
    offset: int,
    *,
    correlation: int = 1,
    client_id: str | None = "broker-1-fetcher",
    version: int = 5,
    replica_id: int = 1,
    topic: str = "t",
    session_epoch: int = -1,
    named: bool = True,
) -> bytes:
    """Return a follower's Fetch request for one partition; named=False omits the partition (fetch session)."""
    partitions = ((topic, ((0, offset),)),) if named else ()
    body = fetch_body(version, partitions, replica_id=replica_id, session_epoch=session_epoch)
    return request(1, version, correlation, client_id, body, tags=b"\x00" if version >= 12 else b"")


def fetch_body(
    version: int,
    topics: Sequence[tuple[str, Sequence[tuple[int, int]]]],
    *,
    replica_id: int = 1,
    session_epoch: int = -1,
    forgotten: Sequence[tuple[str, Sequence[int]]] = (),
) -> bytes:
    """Return a Fetch body, written by kio (v4 on) or by hand; topics: (name, ((partition, offset),))."""
    if version < 4:
        return _old_fetch_body(version, topics, replica_id)
    schema = importlib.import_module(f"kio.schema.fetch.v{version}.request")

    def named(cls: Any, topic: str, partitions: tuple[Any, ...]) -> Any:
        key = {"topic_id": uuid.UUID(TOPIC_ID)} if version >= 13 else {"topic": topic}
        return cls(**key, partitions=partitions)

    fields: dict[str, Any] = {
        "max_wait": timedelta(milliseconds=500),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": tuple(
            named(
                schema.FetchTopic,
                topic,
                tuple(
                    schema.FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20)
                    for p, o in partitions
                ),
            )
            for topic, partitions in topics
        ),
    }
    if version < 15:
        fields["replica_id"] = replica_id
    if version >= 7:
        fields["session_id"] = 77
        fields["session_epoch"] = session_epoch
        fields["forgotten_topics_data"] = tuple(
            named(schema.ForgottenTopic, topic, tuple(partitions)) for topic, partitions in forgotten
        )
    return encoded(schema.FetchRequest(**fields))


def epoch_question(
    version: int, *, correlation: int = 2, client_id: str = "broker-1-fetcher", epoch: int = 4
) -> bytes:
    """Return an OffsetForLeaderEpoch request for t-0, written by hand (v0 to v3)."""
    current = struct.pack(">i", 9) if version >= 2 else b""
    body = struct.pack(">i", 1) + text("t") + struct.pack(">ii", 1, 0) + current + struct.pack(">i", epoch)
    replica = struct.pack(">i", 1) if version >= 3 else b""
    return request(23, version, correlation, client_id, replica + body)


def epoch_answer(version: int, *, correlation: int = 2, epoch: int = 4, end: int = 21, error: int = 0) -> bytes:
    """Return an OffsetForLeaderEpoch answer for t-0, written by hand (v0 to v3)."""
    throttle = struct.pack(">i", 0) if version >= 2 else b""
    leader_epoch = struct.pack(">i", epoch) if version >= 1 else b""
    body = struct.pack(">i", 1) + text("t") + struct.pack(">ihi", 1, error, 0) + leader_epoch
    return answer(correlation, throttle + body + struct.pack(">q", end))


def leader_and_isr(
    version: int,
    commands: Sequence[tuple[str, int, int, int, Sequence[int]]],
    *,
    correlation: int = 3,
    client_id: str = "1",
) -> bytes:
    """Return a LeaderAndIsr request, written by hand; commands: (topic, partition, leader, leader epoch, ISR)."""
    compact = version >= 4
    tags = b"\0" if compact else b""
    body = tags + struct.pack(">i", 9) + b"\0" * (version >= 7)  # controller, is-KRaft flag
    body += struct.pack(">i", 4) + b"\xff" * 8 * (version >= 2) + b"\1" * (version >= 5)  # epochs, type
    body += _count(len(commands), compact)
    for topic, partition, leader, epoch, isr in commands:
        state = struct.pack(">iiii", partition, 4, leader, epoch) + _numbers(isr, compact)
        state += struct.pack(">i", 7) + _numbers(isr, compact) + _numbers((), compact) * 2 * (version >= 3)
        state += b"\0" * ((version >= 1) + (version >= 6)) + tags
        topic_id = bytes.fromhex(TOPIC_ID) * (version >= 5)
        body += text(topic) + state if version < 2 else b""
        body += _name(topic, compact) + topic_id + _count(1, compact) + state + tags if version >= 2 else b""
    return request(4, version, correlation, client_id, body + b"rest")


def leader_and_isr_answer(
    version: int, errors: Sequence[tuple[str, int, int]], *, error: int = 0, correlation: int = 3
) -> bytes:
    """Return the answer to a LeaderAndIsr request, written by hand; errors: (topic, partition, error)."""
    compact = version >= 4
    tags = b"\0" if compact else b""
    body = tags + struct.pack(">h", error) + _count(len(errors), compact)
    for topic, partition, code in errors:
        name = _name(topic, compact)
        place = bytes.fromhex(TOPIC_ID) + _count(1, True) if version >= 5 else name
        body += place + struct.pack(">ih", partition, code) + tags + (tags if version >= 5 else b"")
    return answer(correlation, body)


def _count(number: int, compact: bool) -> bytes:
    return bytes([number + 1]) if compact else struct.pack(">i", number)


def _name(topic: str, compact: bool) -> bytes:
    return _count(len(topic), True) + topic.encode() if compact else text(topic)


def _numbers(numbers: Sequence[int], compact: bool) -> bytes:
    return _count(len(numbers), compact) + b"".join(struct.pack(">i", number) for number in numbers)


def encoded(entity: Any) -> bytes:
    """Return kio's encoding of a message."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def text(value: str) -> bytes:
    """Return Kafka's string: length and bytes."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def _old_fetch_body(
    version: int, topics: Sequence[tuple[str, Sequence[tuple[int, int]]]], replica_id: int
) -> bytes:
    body = struct.pack(">iii", replica_id, 500, 1) + (struct.pack(">i", 1 << 20) if version >= 3 else b"")
    body += struct.pack(">i", len(topics))
    for topic, partitions in topics:
        body += text(topic) + struct.pack(">i", len(partitions))
        body += b"".join(struct.pack(">iqi", p, o, 1 << 20) for p, o in partitions)
    return body
