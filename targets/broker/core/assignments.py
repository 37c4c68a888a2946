"""
What ZooKeeper holds of partitions' places: the topics' nodes.

Source:  Kafka Replication Design V3, Paths 3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from targets.broker.core.zookeeper import MISREAD, misread


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """
    A reassignment that is not over: which replicas a partition had before it, and which it is to have (V3, RAR).

    One with both alike was cancelled; what it has added goes again.
    """

    origin: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """
    What a topic's node holds: the replicas of each partition, the first of which is preferred, and its moves.

    While a partition is being moved, its replicas are those of before and the new ones (V3: AR+RAR).

    Attributes:
        ids: of the partitions that were removed and added again, in place of their topic's.
        once: how many partitions the topic had before some were removed, 0 if none was.
    """

    replicas: dict[int, tuple[int, ...]]
    moves: dict[int, Move] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    once: int = 0


def encode_topic(assignment: Assignment) -> bytes:
    """Encode a topic node."""
    raw: dict[str, Any] = {"partitions": {str(p): list(r) for p, r in sorted(assignment.replicas.items())}}
    if assignment.moves:
        raw["moves"] = {
            str(partition): {"from": list(move.origin), "to": list(move.target)}
            for partition, move in sorted(assignment.moves.items())
        }
    if assignment.once:
        raw["once"] = assignment.once
    if assignment.ids:
        raw["ids"] = {str(partition): own for partition, own in sorted(assignment.ids.items())}
    return json.dumps(raw).encode()


def encode_assignment(replicas: dict[int, tuple[int, ...]]) -> bytes:
    """Encode the node of a topic of which nothing is being moved."""
    return encode_topic(Assignment(replicas=replicas))


def decode_topic(data: bytes) -> Assignment:
    """
    Decode a topic node.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        raw: dict[str, Any] = json.loads(data)
        replicas = {int(p): brokers_of(of) for p, of in raw["partitions"].items()}
        if any(partition < 0 for partition in replicas):
            raise ValueError("a negative number")
        moves = {
            int(p): Move(origin=brokers_of(move["from"]), target=brokers_of(move["to"]))
            for p, move in raw.get("moves", {}).items()
        }
        ids, once = {int(p): int(own) for p, own in raw.get("ids", {}).items()}, int(raw.get("once", 0))
    except MISREAD as error:
        raise misread(data, 'partitions, {"0": [1, 2]}', error) from error
    return Assignment(
        replicas=replicas,
        moves={p: move for p, move in moves.items() if p in replicas},
        ids={p: own for p, own in ids.items() if p in replicas},
        once=once,
    )


def brokers_of(found: Iterable[Any]) -> tuple[int, ...]:
    """Return the brokers of a list as it was read; raise ValueError if one of them cannot be."""
    brokers = tuple(int(broker) for broker in found)
    if any(broker < 0 for broker in brokers):
        raise ValueError("a negative number")
    return brokers


def decode_assignment(data: bytes) -> dict[int, tuple[int, ...]]:
    """
    Decode a topic node: partition -> its replicas.

    Raises:
        NodeError: the node holds something else.
    """
    return decode_topic(data).replicas
