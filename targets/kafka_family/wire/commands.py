"""
LeaderAndIsr in Apache Kafka's layout: the controller's request and the broker's answer.

Fencepost's own broker uses the same api key with the fields of Kafka Replication Design V3. The fabric therefore
reads LeaderAndIsr only if its `commands` argument says that the layout is Kafka's.

Nothing here does IO. Readers work as those of targets/kafka_family/wire/bodies.py.

Source:  Kafka's LeaderAndIsrRequest.json and -Response.json v0-v7; KIP-516 (topic ids, from v5 on).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from targets.kafka_family.wire.bodies import check_version
from targets.kafka_family.wire.cursor import Cursor

VERSION_MAX: Final = 7
FLEXIBLE_FROM: Final = 4
TOPIC_IDS_FROM: Final = 5

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_BYTE: Final = struct.Struct(">b")
_STATE: Final = struct.Struct(">iiii")  # partition, controller epoch, leader, leader epoch
_PARTITION_ERROR: Final = struct.Struct(">ih")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The leader, leader epoch and ISR that a controller sets for a partition; by broker ids, leader -1: none."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """
    A LeaderAndIsr request.

    Attributes:
        topics: Topic names by topic id (as hex); empty before v5, which has no ids.
    """

    commands: tuple[Command, ...]
    topics: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrAnswer:
    """
    A LeaderAndIsr answer: the error of the whole request, and of each partition.

    Attributes:
        errors: By (topic, partition); from v5 on the topic is its id, as hex.
    """

    error: int
    errors: Mapping[tuple[str, int], int]


def leader_and_isr(buffer: bytes, offset: int, version: int) -> tuple[Commands, int]:
    """
    Read a LeaderAndIsr request's partitions; the fields after them (live leaders, tagged fields) are not read.

    Raises:
        Unreadable: The bytes do not have this layout, or the version is unknown.
    """
    check_version("LeaderAndIsr", version, VERSION_MAX)
    cursor = Cursor(buffer, offset, flexible=version >= FLEXIBLE_FROM)
    cursor.skip_tags()
    cursor.take(_head(version))
    commands: list[Command] = []
    topics: dict[str, str] = {}
    if version < 2:
        for _ in range(cursor.count()):
            commands.append(_command(cursor, version, cursor.text()))
        return Commands(commands=tuple(commands), topics={}), cursor.offset - offset
    for _ in range(cursor.count()):
        topic = cursor.text()
        if version >= TOPIC_IDS_FROM:
            topics[cursor.topic_id()] = topic
        for _ in range(cursor.count()):
            commands.append(_command(cursor, version, topic))
        cursor.skip_tags()
    return Commands(commands=tuple(commands), topics=topics), cursor.offset - offset


def leader_and_isr_answer(buffer: bytes, offset: int, version: int) -> tuple[LeaderAndIsrAnswer, int]:
    """Read a LeaderAndIsr answer of its request's version; raise Unreadable."""
    check_version("LeaderAndIsr", version, VERSION_MAX)
    cursor = Cursor(buffer, offset, flexible=version >= FLEXIBLE_FROM)
    cursor.skip_tags()
    (error,) = cursor.take(_SHORT)
    errors: dict[tuple[str, int], int] = {}
    for _ in range(cursor.count()):
        topic = cursor.topic_id() if version >= TOPIC_IDS_FROM else cursor.text()
        for _ in range(cursor.count() if version >= TOPIC_IDS_FROM else 1):
            partition, error_of = cursor.take(_PARTITION_ERROR)
            errors[topic, partition] = error_of
            cursor.skip_tags()
        if version >= TOPIC_IDS_FROM:
            cursor.skip_tags()
    return LeaderAndIsrAnswer(error=error, errors=errors), cursor.offset - offset


def _head(version: int) -> struct.Struct:
    """Return the layout of controller id, is-KRaft flag, controller epoch, broker epoch and type."""
    return struct.Struct(
        ">i"
        + ("?" if version >= 7 else "")
        + "i"
        + ("q" if version >= 2 else "")
        + ("b" if version >= TOPIC_IDS_FROM else "")
    )


def _command(cursor: Cursor, version: int, topic: str) -> Command:
    partition, _, leader, leader_epoch = cursor.take(_STATE)
    isr = cursor.numbers()
    cursor.take(_INT)  # the version of the partition's node in ZooKeeper
    cursor.numbers()  # replicas
    if version >= 3:
        cursor.numbers()  # replicas that are added
        cursor.numbers()  # and removed
    if version >= 1:
        cursor.take(_BYTE)  # whether the partition is new
    if version >= 6:
        cursor.take(_BYTE)  # whether the leader recovers from an unclean election
    cursor.skip_tags()
    return Command(topic=topic, partition=partition, leader=leader, leader_epoch=leader_epoch, isr=isr)
