"""
Asks a node, over Kafka's protocol, whether it serves and whether it leads a partition.

ZooKeeper names a leader before that broker knows it, and a broker is registered before it serves. A broker also
leads before it names itself as leader to clients: the controller sends it LeaderAndIsr first, then UpdateMetadata.

Source:  Kafka's ApiVersionsRequest.json v0, MetadataRequest.json v1 and ListOffsetsRequest.json v1, which every
         release since 0.10.1 accepts.
"""

from __future__ import annotations

import time
from typing import Final

from harness.workload.plan import Place
from targets.kafka_family.clients.connection import Connection, NoAnswer, NotSent
from targets.kafka_family.wire import requests
from targets.kafka_family.wire.errors import ErrorCode

ANSWER_S_MAX: Final = 2.0
_METADATA_VERSION: Final = 1
_CLIENT: Final = "fencepost-probe"


def serves(address: str) -> bool:
    """Return True if a node answers at host:port."""
    try:
        with _connected(address) as connection:
            return connection.ask(requests.api_versions()) is ErrorCode.NONE
    except (NotSent, NoAnswer):
        return False


def leads(address: str, topic: str, partition: int) -> bool:
    """Return True if the node at that address leads the partition, and names itself to clients as its leader."""
    place = Place(topic, partition)
    try:
        with _connected(address) as connection:
            listed = connection.ask(requests.list_offsets(place, requests.EARLIEST)).get(place)
            if listed is None or listed.error is not ErrorCode.NONE:
                return False
            return _named_leader(connection, place) == address
    except (NotSent, NoAnswer):
        return False


def named_leader(address: str, topic: str, partition: int) -> str:
    """Return the leader's "host:port" according to a node; "" if it names none or does not answer."""
    try:
        with _connected(address) as connection:
            return _named_leader(connection, Place(topic, partition))
    except (NotSent, NoAnswer):
        return ""


def _named_leader(connection: Connection, place: Place) -> str:
    found = connection.ask(requests.metadata([place.topic], _METADATA_VERSION))
    of_topic = found.topics.get(place.topic)
    named = None if of_topic is None else of_topic.partitions.get(place.partition)
    return "" if named is None else found.addresses.get(named.leader, "")


def _connected(address: str) -> Connection:
    return Connection(address, _CLIENT, time.monotonic() + ANSWER_S_MAX)
