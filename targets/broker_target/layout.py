"""
Our broker's state in ZooKeeper as the harness reads it: paths, what stands there, and an operator's requests.

    /controller                                       2
    /brokers/ids/[broker]                             …
    /brokers/topics/[topic]                           {"partitions": {"0": [1, 2]}, "moves": …}
    /brokers/topics/[topic]/[partition]/leaderAndISR  {"leader_epoc": 4, "leader": 1, "ISR": [1, 2], …}
    /admin/elections                                  {"elections": [..], "moves": [..], "leaving": [..], …}

The module is a `Layout` of targets/kafka_family/zookeeper/layout.py. It is a witness, and imports nothing of the
broker: a fault in the broker's own paths or codecs shows here, and is not shared. All calls raise ValueError for
data that they cannot read, except requests: a kind that cannot be read asks for nothing, as for the controller.

Source:  Kafka Replication Design V3, Paths 1 to 4; for 5 and 6 our broker has the one node of requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from targets.kafka_family.zookeeper.layout import Port, StateNode

CONTROLLER: Final = "/controller"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
REQUESTS: Final = "/admin/elections"

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
# V3, A: for no leader.
_NO_LEADER: Final = -1
# Which of the topics of one name: the transaction that registered its maker, and a number.
_MARK: Final = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")
# What reading JSON of any shape may raise.
_MISREAD: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
# So many bytes of a node, and characters of a reason, an error shows.
_SHOWN: Final = 80

T = TypeVar("T")
# A topic and a partition.
_Place: TypeAlias = tuple[str, int]


def registration_path(broker_id: int) -> str:
    """Return the path of V3, Paths 2."""
    return f"{BROKER_IDS}/{broker_id}"


def controller_path() -> str:
    """Return the path of V3, Paths 1."""
    return CONTROLLER


def topic_path(topic: str) -> str:
    """Return the path of V3, Paths 3."""
    return f"{TOPICS}/{topic}"


def partition_path(topic: str, partition: int) -> str:
    """Return the path of V3, Paths 4."""
    return f"{TOPICS}/{topic}/{partition}/leaderAndISR"


def elections_path() -> str:
    """Return where all requests stand until the controller takes them."""
    return REQUESTS


def controller_id(data: bytes) -> int:
    """Read V3's {brokerid}."""
    return int(data)


def assignment(data: bytes) -> Mapping[int, tuple[int, ...]]:
    """Read which brokers each partition of a topic has; while one is moved, those of before and the new ones."""
    return _topic(data)[0]


@lru_cache(maxsize=256)
def partition_state(data: bytes, version: int) -> StateNode:
    """Read a partition's leader, its epoch (V3's `leader_epoc`) and its ISR; cached, as waits read it often."""
    try:
        raw = json.loads(data)
        state = StateNode(
            leader=_number(raw["leader"], least=_NO_LEADER),
            # There is a next epoch after each.
            leader_epoch=_number(raw["leader_epoc"], _INT_MAX - 1),
            isr=tuple(_number(member) for member in raw["ISR"]),
            version=version,
        )
        _number(raw["controller_epoch"])
        _number(raw.get("topic_id", 0), _LONG_MAX)
    except _MISREAD as error:
        raise _misread(data, "leader, leader_epoc, ISR and controller_epoch", error) from error
    return state


def elect(port: Port, topic: str, partition: int, broker_id: int) -> str:
    """Write the election where the controller reads it; the controller removes it once it has decided."""
    wanted = {(topic, partition): broker_id}
    # An election that was asked for before is not wanted any more.
    port.update(REQUESTS, lambda there: _encoded(replace(_requests(there), elections=wanted)))
    return f"broker {broker_id} asked for at {REQUESTS}"


def move(port: Port, topic: str, partition: int, broker_ids: Sequence[int]) -> str:
    """Write what is wanted where the controller reads it, beside what it has not taken yet."""

    def beside(there: bytes | None) -> bytes:
        before = _requests(there)
        return _encoded(replace(before, moves={**before.moves, (topic, partition): tuple(broker_ids)}))

    port.update(REQUESTS, beside)
    return f"replicas {list(broker_ids)} of {topic}-{partition} asked for at {REQUESTS}"


def remove(port: Port, topic: str, partitions: Sequence[int]) -> str:
    """Write what is to go where the controller reads it, beside what it has not taken yet."""
    gone = [(topic, partition) for partition in partitions]

    def beside(there: bytes | None) -> bytes:
        before = _requests(there)
        return _encoded(replace(before, removals=before.removals.union(gone)))

    port.update(REQUESTS, beside)
    return f"removal of {', '.join(f'{topic}-{partition}' for topic, partition in gone)} asked for at {REQUESTS}"


def wanted(port: Port, topic: str, partition: int) -> tuple[int, ...]:
    """Look at what the controller has not taken yet, then at the topic's node."""
    asked = _requests(port.read(REQUESTS)).moves.get((topic, partition))
    if asked is not None:
        return asked
    node = port.read(topic_path(topic))
    if node is None:
        return ()
    return _topic(node)[1].get(partition, ())


def _topic(data: bytes) -> tuple[Mapping[int, tuple[int, ...]], Mapping[int, tuple[int, ...]]]:
    """Read the replicas that each partition has, and those that it is to have once its move is over."""
    try:
        raw = json.loads(data)
        replicas = {_number(int(partition)): _brokers(of) for partition, of in raw["partitions"].items()}
        targets = dict(replicas)
        for partition, moving in raw.get("moves", {}).items():
            _brokers(moving["from"])
            target = _brokers(moving["to"])
            if int(partition) in replicas:
                targets[int(partition)] = target
        for partition, own in raw.get("ids", {}).items():
            int(partition)
            _number(own, _LONG_MAX)
        _number(raw.get("once", 0))
        made = raw.get("made", "")
        if made != "" and not (isinstance(made, str) and _MARK.fullmatch(made)):
            raise ValueError(f"made {str(made)[:30]!r}, expected a mark, as 167-12")
    except _MISREAD as error:
        raise _misread(data, 'partitions, {"0": [1, 2]}', error) from error
    return replicas, targets


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requests:
    """
    What stands in the node of requests.

    Attributes:
        elections: who should lead.
        moves: which replicas a partition should have.
        leaving: the brokers that are about to end; they ask themselves.
        removals: the partitions that are to go.
    """

    elections: Mapping[_Place, int] = field(default_factory=dict)
    moves: Mapping[_Place, tuple[int, ...]] = field(default_factory=dict)
    leaving: frozenset[int] = frozenset()
    removals: frozenset[_Place] = frozenset()


def _requests(data: bytes | None) -> _Requests:
    """Read the node of requests, None for no node."""
    try:
        raw = json.loads(data or b"{}")
        raw.get("elections")
    except _MISREAD:
        return _Requests()
    return _Requests(
        elections=dict(_each(raw, "elections", lambda one: (_place(one), int(one["leader"])))),
        moves=dict(_each(raw, "moves", lambda one: (_place(one), _brokers(one["replicas"])))),
        leaving=frozenset(_each(raw, "leaving", _number)),
        removals=frozenset(_each(raw, "removals", _place)),
    )


def _each(raw: Mapping[str, Any], kind: str, read: Callable[[Any], T]) -> Iterable[T]:
    """Read all requests of a kind; none if one of them cannot be read."""
    try:
        return [read(one) for one in raw.get(kind, [])]
    except _MISREAD:
        return []


def _encoded(requests: _Requests) -> bytes:
    """Write what the controller reads; elections stand there even if there are none."""
    elections = requests.elections.items()
    raw: dict[str, Any] = {"elections": [{**_named(place), "leader": leader} for place, leader in elections]}
    if requests.moves:
        raw["moves"] = [{**_named(place), "replicas": list(of)} for place, of in requests.moves.items()]
    if requests.leaving:
        raw["leaving"] = sorted(requests.leaving)
    if requests.removals:
        raw["removals"] = [_named(place) for place in sorted(requests.removals)]
    return json.dumps(raw).encode()


def _named(place: _Place) -> dict[str, Any]:
    return {"topic": place[0], "partition": place[1]}


def _place(raw: Mapping[str, Any]) -> _Place:
    return str(raw["topic"]), int(raw["partition"])


def _brokers(found: object) -> tuple[int, ...]:
    if not isinstance(found, list):
        raise ValueError(f"{str(found)[:30]}, expected a list of brokers")
    return tuple(_number(broker) for broker in found)


def _number(found: object, most: int = _INT_MAX, least: int = 0) -> int:
    """Return a whole number of JSON, which True is not; raise ValueError if it is none, or beyond the bounds."""
    if type(found) is not int or not least <= found <= most:
        raise ValueError(f"{str(found)[:30]}, expected a whole number from {least} to {most}")
    return found


def _misread(data: bytes, expected: str, error: Exception) -> ValueError:
    return ValueError(
        f"{data[:_SHOWN]!r}: expected JSON with {expected} ({type(error).__name__}: {str(error)[:_SHOWN]})"
    )
