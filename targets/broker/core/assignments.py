"""
What ZooKeeper holds of partitions' places: the topics' nodes.

Source:  Kafka Replication Design V3, Paths 3.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from targets.broker.core.zookeeper import INT_MAX, LONG_MAX, MISREAD, misread, whole_number

# What tells a topic from others of its name; `made` makes the name of a node of it.
_MARK: Final = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


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
        made: the mark that tells the topic from others of its name, "" for none (module `made`).
    """

    replicas: dict[int, tuple[int, ...]]
    moves: dict[int, Move] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    once: int = 0
    made: str = ""


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
    if assignment.made:
        raw["made"] = assignment.made
    return json.dumps(raw).encode()


def encode_assignment(replicas: dict[int, tuple[int, ...]]) -> bytes:
    """Encode the node of a topic of which nothing is being moved."""
    return encode_topic(Assignment(replicas=replicas))


def decode_topic(data: bytes, most: int = INT_MAX) -> Assignment:
    """
    Decode a topic node.

    Args:
        most: how many partitions a topic may have; one of more would hold up all others.

    Raises:
        NodeError: the node holds something else.
    """
    try:
        raw: dict[str, Any] = json.loads(data)
        if len(raw["partitions"]) > most:
            raise ValueError(f"{len(raw['partitions'])}, expected at most {most} (topic_partitions_max)")
        replicas = {whole_number(int(p)): brokers_of(of) for p, of in raw["partitions"].items()}
        moves = {
            int(p): Move(origin=brokers_of(move["from"]), target=brokers_of(move["to"]))
            for p, move in raw.get("moves", {}).items()
        }
        ids = {int(p): whole_number(own, LONG_MAX) for p, own in raw.get("ids", {}).items()}
        once = whole_number(raw.get("once", 0))
        made = raw.get("made", "")
        if made != "" and not (isinstance(made, str) and _MARK.fullmatch(made)):
            raise ValueError(f"made {str(made)[:30]!r}, expected a mark, as 167-12")
    except MISREAD as error:
        raise misread(data, 'partitions, {"0": [1, 2]}', error) from error
    return Assignment(
        replicas=replicas,
        moves={p: move for p, move in moves.items() if p in replicas},
        ids={p: own for p, own in ids.items() if p in replicas},
        once=once,
        made=made,
    )


def brokers_of(found: Any) -> tuple[int, ...]:
    """Return the brokers of a list as it was read; raise ValueError if there is no such list of them."""
    if not isinstance(found, list):
        raise ValueError(f"{str(found)[:30]}, expected a list of brokers")
    return tuple(whole_number(broker) for broker in found)


def decode_assignment(data: bytes) -> dict[int, tuple[int, ...]]:
    """
    Decode a topic node: partition -> its replicas.

    Raises:
        NodeError: the node holds something else.
    """
    return decode_topic(data).replicas
