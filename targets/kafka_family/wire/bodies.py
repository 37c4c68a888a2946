"""
The bodies that the fabric reads: Fetch requests, OffsetForLeaderEpoch requests and answers.

Nothing here does IO. Readers are `(buffer, offset, version) -> (value, size)`. The offset is the end of the
header's fixed part, so that the reader of a body also reads the tagged fields of a flexible header. The size is
the number of bytes read, which may be less than the body has. Readers raise Unreadable and never read past the
buffer.

Source:  Kafka's FetchRequest.json v0-v18, OffsetForLeaderEpochRequest.json and -Response.json v0-v4;
         KIP-101 (v0), KIP-279 (v1), KIP-320 (v2, v3).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Final

from targets.kafka_family.wire.cursor import Cursor
from targets.kafka_family.wire.frames import Unreadable

FETCH_VERSION_MAX: Final = 18
FETCH_FLEXIBLE_FROM: Final = 12
EPOCH_VERSION_MAX: Final = 4
EPOCH_FLEXIBLE_FROM: Final = 4
# A fetch session's first request has epoch 0, one outside any session -1: both name all their partitions.
SESSION_EPOCH_FULL_MAX: Final = 0

_INT: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBody:
    """
    What a Fetch request asks for.

    Attributes:
        replica_id: -1 for a consumer; None if the body has none (v15+).
        full: True if the request names all its partitions; False if it names only those that have changed in a
            fetch session (v7 and later).
        offsets: Fetch offset of each (topic, partition). From v13 on the topic is its id, as hex.
        forgotten: (topic, partition) pairs that leave the session, with topics as in offsets.
    """

    replica_id: int | None
    full: bool
    offsets: tuple[tuple[tuple[str, int], int], ...]
    forgotten: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochQuestion:
    """KIP-101 step 4.2: where does this epoch end? current_leader_epoch is -1 before v2."""

    topic: str
    partition: int
    leader_epoch: int
    current_leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnswer:
    """KIP-101 step 4.3; leader_epoch is -1 in v0, which has none; end_offset is -1 where undefined."""

    topic: str
    partition: int
    error: int
    leader_epoch: int
    end_offset: int


def fetch_body(buffer: bytes, offset: int, version: int) -> tuple[FetchBody, int]:
    """
    Read a Fetch request's replica, offsets and forgotten partitions; rack id and tagged fields are not read.

    Raises:
        Unreadable: The bytes do not have this layout, or the version is unknown.
    """
    check_version("Fetch", version, FETCH_VERSION_MAX)
    cursor = Cursor(buffer, offset, flexible=version >= FETCH_FLEXIBLE_FROM)
    cursor.skip_tags()
    head = cursor.take(_fetch_head(version))
    replica_id = head[0] if version < 15 else None
    full = version < 7 or head[-1] <= SESSION_EPOCH_FULL_MAX
    partition_layout = _fetch_partition(version)
    offset_at = 2 if version >= 9 else 1
    offsets: list[tuple[tuple[str, int], int]] = []
    for _ in range(cursor.count()):
        topic = cursor.topic_id() if version >= 13 else cursor.text()
        for _ in range(cursor.count()):
            values = cursor.take(partition_layout)
            cursor.skip_tags()
            offsets.append(((topic, values[0]), values[offset_at]))
        cursor.skip_tags()
    forgotten: list[tuple[str, int]] = []
    if version >= 7:
        for _ in range(cursor.count()):
            topic = cursor.topic_id() if version >= 13 else cursor.text()
            forgotten += [(topic, cursor.take(_INT)[0]) for _ in range(cursor.count())]
            cursor.skip_tags()
    body = FetchBody(replica_id=replica_id, full=full, offsets=tuple(offsets), forgotten=tuple(forgotten))
    return body, cursor.offset - offset


def epoch_questions(buffer: bytes, offset: int, version: int) -> tuple[tuple[EpochQuestion, ...], int]:
    """Read the questions of an OffsetForLeaderEpoch request; raise Unreadable, also for unknown versions."""
    check_version("OffsetForLeaderEpoch", version, EPOCH_VERSION_MAX)
    cursor = Cursor(buffer, offset, flexible=version >= EPOCH_FLEXIBLE_FROM)
    cursor.skip_tags()
    if version >= 3:
        cursor.take(_INT)  # replica id: the client id has it too
    layout = _QUESTION_FENCED if version >= 2 else _QUESTION
    questions: list[EpochQuestion] = []
    for _ in range(cursor.count()):
        topic = cursor.text()
        for _ in range(cursor.count()):
            values = cursor.take(layout)
            cursor.skip_tags()
            questions.append(
                EpochQuestion(
                    topic=topic,
                    partition=values[0],
                    leader_epoch=values[-1],
                    current_leader_epoch=values[1] if version >= 2 else -1,
                )
            )
        cursor.skip_tags()
    return tuple(questions), cursor.offset - offset


def epoch_answers(buffer: bytes, offset: int, version: int) -> tuple[tuple[EpochAnswer, ...], int]:
    """Read an OffsetForLeaderEpoch answer of its request's version; raise Unreadable."""
    check_version("OffsetForLeaderEpoch", version, EPOCH_VERSION_MAX)
    cursor = Cursor(buffer, offset, flexible=version >= EPOCH_FLEXIBLE_FROM)
    cursor.skip_tags()
    if version >= 2:
        cursor.take(_INT)  # throttle time
    layout = _ANSWER_WITH_EPOCH if version >= 1 else _ANSWER
    answers: list[EpochAnswer] = []
    for _ in range(cursor.count()):
        topic = cursor.text()
        for _ in range(cursor.count()):
            values = cursor.take(layout)
            cursor.skip_tags()
            answers.append(
                EpochAnswer(
                    topic=topic,
                    partition=values[1],
                    error=values[0],
                    leader_epoch=values[2] if version >= 1 else -1,
                    end_offset=values[-1],
                )
            )
        cursor.skip_tags()
    return tuple(answers), cursor.offset - offset


_QUESTION: Final = struct.Struct(">ii")  # partition, leader epoch
_QUESTION_FENCED: Final = struct.Struct(">iii")  # partition, current leader epoch, leader epoch
_ANSWER: Final = struct.Struct(">hiq")  # error, partition, end offset
_ANSWER_WITH_EPOCH: Final = struct.Struct(">hiiq")  # error, partition, leader epoch, end offset


@cache
def _fetch_head(version: int) -> struct.Struct:
    """Return the layout of replica id, max wait, min and max bytes, isolation level, session id and epoch."""
    return struct.Struct(
        (">iii" if version < 15 else ">ii")
        + ("i" if version >= 3 else "")
        + ("b" if version >= 4 else "")
        + ("ii" if version >= 7 else "")
    )


@cache
def _fetch_partition(version: int) -> struct.Struct:
    """Return the layout of partition, current epoch, fetch offset, last fetched epoch, log start, max bytes."""
    return struct.Struct(
        ">i"
        + ("i" if version >= 9 else "")
        + "q"
        + ("i" if version >= 12 else "")
        + ("q" if version >= 5 else "")
        + "i"
    )


def check_version(api: str, version: int, highest: int) -> None:
    """Raise Unreadable if the api's version is unknown."""
    if not 0 <= version <= highest:
        raise Unreadable(f"{api}: version {version}; expected 0 to {highest}")
