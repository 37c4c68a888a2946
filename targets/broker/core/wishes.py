"""
What an operator asks the controller for, in one node of ZooKeeper, until the controller has taken it.

    {"elections": [..], "moves": [..], "leaving": [1], "removals": [..]}
V3 has a path for each kind of change. Whoever writes keeps what others have asked for (`beside`). A kind that
cannot be read is none; the others of its node are read all the same, and the node goes once all is taken.
Source:  Kafka Replication Design V3, Paths 5 and 6; Kafka's /admin/preferred_replica_election.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from targets.broker.core.assignments import brokers_of
from targets.broker.core.messages import TopicPartition
from targets.broker.core.zookeeper import ELECTIONS, MISREAD, ZkDelete, ZkNode, ZkSet

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """
    What stands in the node.

    Attributes:
        elections: partition -> the ISR member that should lead.
        moves: partition -> the replicas that it should have.
        leaving: the brokers that are about to end, and are to leave every ISR that has another member.
        removals: the partitions that are to go.
    """

    elections: Mapping[TopicPartition, int] = field(default_factory=dict)
    moves: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    leaving: frozenset[int] = frozenset()
    removals: tuple[TopicPartition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.elections or self.moves or self.leaving or self.removals)

    def beside(self, there: bytes | None) -> bytes:
        """Return what the node is to hold: this beside what stands in it, None for no node."""
        before = decode_wishes(there)
        together = Wishes(
            elections={**before.elections, **self.elections},
            moves={**before.moves, **self.moves},
            leaving=before.leaving | self.leaving,
            removals=(*before.removals, *self.removals),
        )
        return encode_wishes(together)


def encode_wishes(wishes: Wishes) -> bytes:
    """Encode the operator's node."""
    elections = wishes.elections.items()
    raw: dict[str, Any] = {"elections": [{**_place(tp), "leader": broker} for tp, broker in elections]}
    if wishes.moves:
        raw["moves"] = [{**_place(tp), "replicas": list(of)} for tp, of in wishes.moves.items()]
    if wishes.leaving:
        raw["leaving"] = sorted(wishes.leaving)
    if wishes.removals:
        raw["removals"] = [_place(tp) for tp in sorted({*wishes.removals})]
    return json.dumps(raw).encode()


def decode_wishes(data: bytes | None, wrong: list[str] | None = None) -> Wishes:
    """
    Decode the operator's node, None for no node; what cannot be read in it is not asked for.

    Args:
        wrong: what could not be read is added to it.
    """
    wrong = [] if wrong is None else wrong
    try:
        raw: Any = json.loads(data or b"{}")
        elections = raw.get("elections", [])
    except MISREAD as error:
        wrong.append(f"expected JSON with elections, moves, leaving or removals ({type(error).__name__})")
        return Wishes()
    return Wishes(
        elections=_read(wrong, "elections", {}, lambda: {_tp(one): int(one["leader"]) for one in elections}),
        moves=_read(
            wrong, "moves", {}, lambda: {_tp(one): brokers_of(one["replicas"]) for one in raw.get("moves", [])}
        ),
        leaving=_read(wrong, "leaving", frozenset(), lambda: frozenset(brokers_of(raw.get("leaving", [])))),
        removals=_read(wrong, "removals", (), lambda: tuple(_tp(one) for one in raw.get("removals", []))),
    )


def take_out(asked: ZkNode, removals: Iterable[TopicPartition]) -> ZkSet | ZkDelete:
    """
    Return the write that takes what is done out of an operator's node, which goes once nothing is left in it.

    Elections and brokers that leave stay for the controller's next reading; reassignments are done, as they are
    taken first.

    Args:
        removals: the partitions that are still to go.
    """
    left = replace(decode_wishes(asked.data), moves={}, removals=tuple(removals))
    if left:
        return ZkSet(path=ELECTIONS, data=encode_wishes(left), version=asked.version)
    return ZkDelete(path=ELECTIONS, version=asked.version)


def _place(tp: TopicPartition) -> dict[str, Any]:
    return {"topic": tp.topic, "partition": tp.partition}


def _tp(raw: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(str(raw["topic"]), int(raw["partition"]))


def _read(wrong: list[str], kind: str, none: T, read: Callable[[], T]) -> T:
    try:
        return read()
    except MISREAD as error:
        wrong.append(f"{kind}: {type(error).__name__}: {str(error)[:80]}")
        return none
