"""
A client's requests to brokers, each sent once, with what it takes from their answers.

An answer must have exactly one entry for each topic or partition that was asked for; else it is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from harness.workload.plan import Place
from targets.kafka_family.clients.connection import Connection, NoAnswer
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.answers import Changed, Deleted, Fetched, Produced
from targets.kafka_family.wire.errors import ErrorCode

T = TypeVar("T")
K = TypeVar("K", Place, str)

FETCH_WAIT_MS: Final = 500
FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
_TRANSACTION_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """ "host:port" of the partition's leader and of the controller, "" for none, and the error."""

    leader: str
    controller: str
    why: str


def metadata(connection: Connection, topic: str, partition: int) -> Metadata:
    """Ask for the leader; the request does not create a missing topic."""
    found = connection.ask(requests.metadata([topic]))
    leader, why = "", f"{topic}-{partition} is not in the metadata"
    if (of_topic := found.topics.get(topic)) is not None:
        why = f"{topic}: {of_topic.error.name}" if of_topic.error is not ErrorCode.NONE else why
        if (each := of_topic.partitions.get(partition)) is not None:
            leader = found.addresses.get(each.leader, "")
            why = "" if leader else f"{topic}-{partition}: {each.error.name}, leader {each.leader}"
    return Metadata(leader=leader, controller=found.addresses.get(found.controller, ""), why=why)


def leaders(connection: Connection, places: Sequence[Place]) -> dict[Place, str]:
    """Return "host:port" of the leader of each of these partitions that has one, as this node believes."""
    found = connection.ask(requests.metadata(list(dict.fromkeys(place.topic for place in places))))
    named = {
        Place(topic, partition): found.addresses.get(each.leader, "")
        for topic, of_topic in found.topics.items()
        for partition, each in of_topic.partitions.items()
    }
    return {place: named[place] for place in places if named.get(place)}


def produce(
    connection: Connection, topic: str, partition: int, batch: bytes, *, acks: int, timeout_s: float, zstd: bool
) -> Produced | None:
    """Send a batch once; return the result, None with acks=0, which has no answer."""
    place = Place(topic, partition)
    found = produce_each(connection, {place: batch}, acks=acks, timeout_s=timeout_s, zstd=zstd)
    return found[place] if found else None


def produce_each(
    connection: Connection, batches: Mapping[Place, bytes], *, acks: int, timeout_s: float, zstd: bool
) -> dict[Place, Produced]:
    """
    Send a batch to each of these partitions, all in one request; return the results.

    Returns:
        Each partition's result; {} with acks=0, which has no answer.
    """
    version = requests.PRODUCE_ZSTD_VERSION if zstd else requests.PRODUCE_VERSION
    question = requests.produce(batches, acks=acks, timeout_s=timeout_s, version=version)
    if acks == 0:
        connection.send(question)
        return {}
    return _each(connection.ask(question), batches)


def producer_id(connection: Connection) -> tuple[int, int]:
    """
    Ask for a producer's id; return it, and its epoch.

    Raises:
        NoAnswer: the node gives none now.
    """
    found = connection.ask(requests.producer_id(_TRANSACTION_S))
    if found.error is not ErrorCode.NONE:
        raise NoAnswer(f"InitProducerId: {found.error.name}; expected an id")
    return found.number, found.epoch


def fetch(connection: Connection, topic: str, partition: int, offset: int) -> Fetched:
    """Fetch from an offset as a consumer does, waiting a little when there is no data yet."""
    place = Place(topic, partition)
    found = fetch_each(connection, {place: offset}, version=requests.FETCH_VERSION)[place]
    if found.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
        found = fetch_each(connection, {place: offset}, version=requests.FETCH_ZSTD_VERSION)[place]
    return found


def fetch_each(
    connection: Connection,
    offsets: Mapping[Place, int],
    *,
    version: int,
    wait_ms: int = FETCH_WAIT_MS,
    max_bytes: int = FETCH_BYTES_MAX,
) -> dict[Place, Fetched]:
    """
    Fetch from an offset of each of these partitions, all in one request, as a consumer does.

    Args:
        version: requests.FETCH_VERSION, or FETCH_ZSTD_VERSION, which zstd needs (KIP-110).
        wait_ms: how long the broker may wait if it has no data.
        max_bytes: the limit of the answer, and of each partition's data.
    """
    question = requests.fetch(offsets, wait_ms=wait_ms, max_bytes=max_bytes, version=version)
    return _each(connection.ask(question), offsets)


def earliest(connection: Connection, topic: str, partition: int) -> int:
    """Return where a partition's log starts, -1 if its leader does not say."""
    place = Place(topic, partition)
    return the_one(connection.ask(requests.list_offsets(place, requests.EARLIEST)), place).offset


def delete_records(
    connection: Connection, topic: str, partition: int, before: int, *, timeout_s: float
) -> Deleted:
    """Ask a leader, once, to delete the records before an offset (-1: all that are committed)."""
    place = Place(topic, partition)
    return the_one(connection.ask(requests.delete_records(place, before, timeout_s)), place)


def alter_topic(connection: Connection, topic: str, setting: str, to: str) -> Changed:
    """Ask any broker, once, to give a topic this setting, and no other of its own."""
    return the_one(connection.ask(requests.alter_topic(topic, setting, to)), topic)


def shown(assignments: Sequence[Sequence[int]]) -> str:
    """Return the broker ids of a topic's partitions as messages show them."""
    return ", ".join(str(list(ids)) for ids in assignments)


def the_one(found: Mapping[K, T], asked: K) -> T:
    """Return the entry for what was asked, the only one that there must be."""
    return _each(found, {asked: None})[asked]


def _each(found: Mapping[K, T], asked: Mapping[K, object]) -> dict[K, T]:
    """Return the results if there is exactly one for each partition or topic that was asked."""
    if found.keys() != asked.keys():
        had, expected = (", ".join(map(str, places)) or "none" for places in (found, asked))
        raise NoAnswer(f"{len(found)} entries in an answer: {had}; expected one for each of {expected}")
    return dict(found)
