"""
What ZooKeeper holds of partitions' places: the topics' nodes, and the node where an operator asks for changes.

V3 has a path for each kind of change; here elections and reassignments stand in one node until they are taken.
Source:  Kafka Replication Design V3, Paths 3 and 5.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import ELECTIONS, MISREAD, ZkDelete, ZkNode, ZkSet, misread

_NO_ELECTIONS: Final[Mapping[TopicPartition, int]] = MappingProxyType({})
_NO_MOVES: Final[Mapping[TopicPartition, tuple[int, ...]]] = MappingProxyType({})


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
        replicas = {int(p): _brokers(of) for p, of in raw["partitions"].items()}
        if any(partition < 0 for partition in replicas):
            raise ValueError("a negative number")
        moves = {
            int(p): Move(origin=_brokers(move["from"]), target=_brokers(move["to"]))
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


def _brokers(found: Iterable[Any]) -> tuple[int, ...]:
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


def encode_elections(
    wanted: dict[TopicPartition, int],
    moves: Mapping[TopicPartition, tuple[int, ...]] = _NO_MOVES,
    leaving: Iterable[int] = (),
    removals: Iterable[TopicPartition] = (),
) -> bytes:
    """
    Encode what an operator asks for, in one node.

    Args:
        wanted: partition -> the ISR member that should lead.
        moves: partition -> the replicas that it should have.
        leaving: the brokers that are about to end, and are to leave every ISR that has another member.
        removals: the partitions that are to go.
    """
    raw: dict[str, Any] = {
        "elections": [{"topic": tp.topic, "partition": tp.partition, "leader": b} for tp, b in wanted.items()]
    }
    if moves:
        raw["moves"] = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(of)} for tp, of in moves.items()
        ]
    if brokers := sorted({*leaving}):
        raw["leaving"] = brokers
    if going := sorted({*removals}):
        raw["removals"] = [{"topic": tp.topic, "partition": tp.partition} for tp in going]
    return json.dumps(raw).encode()


def encode_beside(
    there: bytes | None,
    wanted: Mapping[TopicPartition, int] = _NO_ELECTIONS,
    moves: Mapping[TopicPartition, tuple[int, ...]] = _NO_MOVES,
    leaving: Iterable[int] = (),
    removals: Iterable[TopicPartition] = (),
) -> bytes:
    """Encode what an operator asks for beside what stands in the node, None for none: nobody has taken it yet."""
    asked = there or b""
    return encode_elections(
        {**decode_elections(asked), **wanted},
        {**decode_moves(asked), **moves},
        decode_leaving(asked) | {*leaving},
        {*decode_removals(asked), *removals},
    )


def take_out(asked: ZkNode, removals: Iterable[TopicPartition]) -> ZkSet | ZkDelete:
    """
    Return the write that takes what is done out of an operator's node, which goes once nothing is left in it.

    Elections and brokers that leave stay for the controller's next reading; reassignments are done, as they are
    taken first.

    Args:
        removals: the partitions that are still to go.
    """
    elections, leaving, left = decode_elections(asked.data), decode_leaving(asked.data), tuple(removals)
    if elections or leaving or left:
        data = encode_elections(elections, leaving=leaving, removals=left)
        return ZkSet(path=ELECTIONS, data=data, version=asked.version)
    return ZkDelete(path=ELECTIONS, version=asked.version)


def decode_elections(data: bytes) -> dict[TopicPartition, int]:
    """Decode an operator's elections; {} if the node holds something else."""
    try:
        raw: dict[str, Any] = json.loads(data)
        return {
            TopicPartition(str(one["topic"]), int(one["partition"])): int(one["leader"])
            for one in raw["elections"]
        }
    except MISREAD:
        return {}


def decode_moves(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Decode an operator's reassignments; {} if the node holds something else, or none."""
    try:
        raw: dict[str, Any] = json.loads(data)
        return {
            TopicPartition(str(one["topic"]), int(one["partition"])): _brokers(one["replicas"])
            for one in raw.get("moves", ())
        }
    except MISREAD:
        return {}


def decode_leaving(data: bytes) -> frozenset[int]:
    """Decode the brokers that are about to end; none if the node holds something else."""
    try:
        raw: dict[str, Any] = json.loads(data)
        return frozenset(_brokers(raw.get("leaving", ())))
    except MISREAD:
        return frozenset()


def decode_removals(data: bytes) -> tuple[TopicPartition, ...]:
    """Decode the partitions that are to go; () if the node holds something else, or none."""
    try:
        raw: dict[str, Any] = json.loads(data)
        return tuple(TopicPartition(str(one["topic"]), int(one["partition"])) for one in raw.get("removals", ()))
    except MISREAD:
        return ()
