"""
A client's requests about topics: the controller, CreateTopics, CreatePartitions and DeleteTopics.

Each is asked of the controller, once; any other broker answers NOT_CONTROLLER and does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from targets.kafka_family.clients.connection import Connection
from targets.kafka_family.clients.questions import the_one
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.answers import Changed
from targets.kafka_family.wire.errors import ErrorCode

# The answers after which what was asked of a topic may have happened all the same.
DOUBTFUL: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """
    What one node believes of the others.

    Attributes:
        controller: "host:port" of the controller, "" for none.
        ids: "host:port" of each live broker -> its id.
    """

    controller: str
    ids: Mapping[str, int]


def brokers(connection: Connection, topic: str) -> Brokers:
    """Ask a node which brokers live and which is the controller; the topic need not be there, and is not made."""
    found = connection.ask(requests.metadata([topic]))
    return Brokers(
        controller=found.addresses.get(found.controller, ""),
        ids={address: broker for broker, address in found.addresses.items()},
    )


def create(connection: Connection, topic: str, assignments: Sequence[Sequence[int]], timeout_s: float) -> Changed:
    """Create a topic with a partition on each of these groups of brokers."""
    return the_one(connection.ask(requests.create_topic(topic, assignments, timeout_s)), topic)


def add(
    connection: Connection, topic: str, count: int, assignments: Sequence[Sequence[int]], timeout_s: float
) -> Changed:
    """Have a topic have so many partitions, the new ones on each of these groups of brokers."""
    return the_one(connection.ask(requests.create_partitions(topic, count, assignments, timeout_s)), topic)


def delete(connection: Connection, topic: str, timeout_s: float) -> Changed:
    """Delete a topic."""
    return the_one(connection.ask(requests.delete_topic(topic, timeout_s)), topic)
