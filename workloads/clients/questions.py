"""
A client's requests to brokers, with their answers, in the oldest versions that have record batch v2.

Every release since 0.11 knows those versions, so the client need not ask for versions first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import kio.schema.create_topics.v2.request as create_v2_request
import kio.schema.create_topics.v2.response as create_v2_response
import kio.schema.fetch.v4.request as fetch_v4_request
import kio.schema.fetch.v4.response as fetch_v4_response
import kio.schema.fetch.v10.request as fetch_v10_request
import kio.schema.fetch.v10.response as fetch_v10_response
import kio.schema.metadata.v4.request as metadata_v4_request
import kio.schema.metadata.v4.response as metadata_v4_response
import kio.schema.produce.v3.request as produce_v3_request
import kio.schema.produce.v3.response as produce_v3_response
import kio.schema.produce.v7.request as produce_v7_request
import kio.schema.produce.v7.response as produce_v7_response
from kio.schema.errors import ErrorCode

from workloads.clients.connection import Connection, NoAnswer

# Version -> its messages. The later versions know zstd (KIP-110). kio's phantom types would require parsing every
# number here, though its writers check them all the same: hence Any.
_PRODUCE: Final[dict[int, tuple[Any, Any]]] = {
    3: (produce_v3_request, produce_v3_response),
    7: (produce_v7_request, produce_v7_response),
}
_FETCH: Final[dict[int, tuple[Any, Any]]] = {
    4: (fetch_v4_request, fetch_v4_response),
    10: (fetch_v10_request, fetch_v10_response),
}
_METADATA: Final[tuple[Any, Any]] = (metadata_v4_request, metadata_v4_response)
_CREATE: Final[tuple[Any, Any]] = (create_v2_request, create_v2_response)

_CONSUMER: Final = -1
_READ_UNCOMMITTED: Final = 0
FETCH_WAIT_MS: Final = 500
FETCH_BYTES_MAX: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """ "host:port" of the partition's leader and of the controller, "" for none, and the error."""

    leader: str
    controller: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """Where the records were appended; base_offset is -1 on error."""

    error: ErrorCode
    base_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The bytes of whole batches; the first may begin before the requested offset."""

    error: ErrorCode
    high_watermark: int
    records: bytes


def metadata(connection: Connection, topic: str, partition: int) -> Metadata:
    """Ask for the leader; the request does not create a missing topic."""
    request, response = _METADATA
    asked = request.MetadataRequest(
        topics=(request.MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False
    )
    found = connection.ask(asked, response.MetadataResponse)
    addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in _listed(found.brokers)}
    leader, why = "", f"{topic}-{partition} is not in the metadata"
    for of_topic in _listed(found.topics):
        why = f"{topic}: {of_topic.error_code.name}" if of_topic.error_code else why
        for each in _listed(of_topic.partitions):
            if (of_topic.name, each.partition_index) == (topic, partition):
                leader = addresses.get(each.leader_id, "")
                why = "" if leader else f"{topic}-{partition}: {each.error_code.name}, leader {each.leader_id}"
    return Metadata(leader=leader, controller=addresses.get(found.controller_id, ""), why=why)


def create_topic(
    connection: Connection, topic: str, assignments: Sequence[Sequence[int]], timeout_s: float
) -> str:
    """Create a topic with a partition on each of these groups of brokers; return the error, "" for none."""
    request, response = _CREATE
    asked = request.CreateTopicsRequest(
        topics=(
            request.CreatableTopic(
                name=topic,
                num_partitions=-1,
                replication_factor=-1,
                assignments=tuple(
                    request.CreatableReplicaAssignment(partition_index=at, broker_ids=tuple(ids))
                    for at, ids in enumerate(assignments)
                ),
                configs=(),
            ),
        ),
        timeout=timedelta(seconds=timeout_s),
        validate_only=False,
    )
    found = connection.ask(asked, response.CreateTopicsResponse)
    (made,) = _one(found.topics)
    return "" if made.error_code is ErrorCode.none else f"{made.error_code.name.upper()}, {made.error_message}"


def produce(
    connection: Connection, topic: str, partition: int, batch: bytes, *, acks: int, timeout_s: float, zstd: bool
) -> Produced | None:
    """Send a batch once; return the result, None with acks=0, which has no answer."""
    request, response = _PRODUCE[7 if zstd else 3]
    data = request.PartitionProduceData(index=partition, records=batch)
    asked = request.ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout=timedelta(seconds=timeout_s),
        topic_data=(request.TopicProduceData(name=topic, partition_data=(data,)),),
    )
    if acks == 0:
        connection.send(asked)
        return None
    found = connection.ask(asked, response.ProduceResponse)
    (of_topic,) = _one(found.responses)
    (result,) = _one(of_topic.partition_responses)
    return Produced(error=result.error_code, base_offset=result.base_offset)


def fetch(connection: Connection, topic: str, partition: int, offset: int) -> Fetched:
    """Fetch from an offset as a consumer does, waiting a little when there is no data yet."""
    found = _fetch(connection, topic, partition, offset, 4)
    if found.error is ErrorCode.unsupported_compression_type:
        found = _fetch(connection, topic, partition, offset, 10)
    return found


def _fetch(connection: Connection, topic: str, partition: int, offset: int, version: int) -> Fetched:
    request, response = _FETCH[version]
    place = request.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX)
    since_v7 = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": ()} if version >= 7 else {}
    asked = request.FetchRequest(
        replica_id=_CONSUMER,
        max_wait=timedelta(milliseconds=FETCH_WAIT_MS),
        min_bytes=1,
        max_bytes=FETCH_BYTES_MAX,
        isolation_level=_READ_UNCOMMITTED,
        topics=(request.FetchTopic(topic=topic, partitions=(place,)),),
        **since_v7,
    )
    found = connection.ask(asked, response.FetchResponse)
    (of_topic,) = _one(found.responses)
    (data,) = _one(of_topic.partitions)
    return Fetched(error=data.error_code, high_watermark=data.high_watermark, records=bytes(data.records or b""))


def shown(assignments: Sequence[Sequence[int]]) -> str:
    """Return the broker ids of a topic's partitions as messages show them."""
    return ", ".join(str(list(ids)) for ids in assignments)


def _listed(items: Sequence[Any] | None) -> Sequence[Any]:
    """Return the items of an array that may not be null, which kio does not check."""
    if items is None:
        raise NoAnswer("a null array in an answer; expected its entries")
    return items


def _one(items: Sequence[Any] | None) -> Sequence[Any]:
    """Return the items if there is exactly one, as there must be."""
    found = _listed(items)
    if len(found) != 1:
        raise NoAnswer(f"{len(found)} entries in an answer; expected 1, for the requested topic or partition")
    return found
