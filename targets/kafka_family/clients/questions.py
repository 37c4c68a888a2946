"""
A client's requests to brokers, with their answers, in the oldest versions that have record batch v2.

Every release since 0.11 knows those versions, so the client need not ask for versions first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

import kio.schema.alter_configs.v0.request as alter_configs_v0_request
import kio.schema.alter_configs.v0.response as alter_configs_v0_response
import kio.schema.delete_records.v0.request as delete_records_v0_request
import kio.schema.delete_records.v0.response as delete_records_v0_response
import kio.schema.fetch.v5.request as fetch_v5_request
import kio.schema.fetch.v5.response as fetch_v5_response
import kio.schema.fetch.v10.request as fetch_v10_request
import kio.schema.fetch.v10.response as fetch_v10_response
import kio.schema.init_producer_id.v0.request as init_producer_id_v0_request
import kio.schema.init_producer_id.v0.response as init_producer_id_v0_response
import kio.schema.list_offsets.v1.request as list_offsets_v1_request
import kio.schema.list_offsets.v1.response as list_offsets_v1_response
import kio.schema.metadata.v4.request as metadata_v4_request
import kio.schema.metadata.v4.response as metadata_v4_response
import kio.schema.produce.v3.request as produce_v3_request
import kio.schema.produce.v3.response as produce_v3_response
import kio.schema.produce.v7.request as produce_v7_request
import kio.schema.produce.v7.response as produce_v7_response
from kio.schema.errors import ErrorCode

from harness.workload.plan import Place
from targets.kafka_family.clients.connection import Connection, NoAnswer

# Version -> its messages. The later versions know zstd (KIP-110). kio's phantom types would require parsing every
# number here, though its writers check them all the same: hence Any.
_PRODUCE: Final[dict[int, tuple[Any, Any]]] = {
    3: (produce_v3_request, produce_v3_response),
    7: (produce_v7_request, produce_v7_response),
}
_FETCH: Final[dict[int, tuple[Any, Any]]] = {
    5: (fetch_v5_request, fetch_v5_response),
    10: (fetch_v10_request, fetch_v10_response),
}
_METADATA: Final[tuple[Any, Any]] = (metadata_v4_request, metadata_v4_response)
_DELETE_RECORDS: Final[tuple[Any, Any]] = (delete_records_v0_request, delete_records_v0_response)
_ALTER_CONFIGS: Final[tuple[Any, Any]] = (alter_configs_v0_request, alter_configs_v0_response)
_INIT_PRODUCER_ID: Final[tuple[Any, Any]] = (init_producer_id_v0_request, init_producer_id_v0_response)
_LIST_OFFSETS: Final[tuple[Any, Any]] = (list_offsets_v1_request, list_offsets_v1_response)
_EARLIEST: Final = -2
# Kafka's number of a resource that is a topic.
_TOPIC: Final = 2

T = TypeVar("T")

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
    """
    The bytes of whole batches; the first may begin before the requested offset.

    log_start is -1 where a broker does not tell, as Apache Kafka's beside an error.
    """

    error: ErrorCode
    high_watermark: int
    log_start: int
    records: bytes


def metadata(connection: Connection, topic: str, partition: int) -> Metadata:
    """Ask for the leader; the request does not create a missing topic."""
    found = metadata_of(connection, [topic])
    addresses = addresses_of(found)
    leader, why = "", f"{topic}-{partition} is not in the metadata"
    for of_topic in _listed(found.topics):
        why = f"{topic}: {of_topic.error_code.name}" if of_topic.error_code else why
        for each in _listed(of_topic.partitions):
            if (of_topic.name, each.partition_index) == (topic, partition):
                leader = addresses.get(each.leader_id, "")
                why = "" if leader else f"{topic}-{partition}: {each.error_code.name}, leader {each.leader_id}"
    return Metadata(leader=leader, controller=addresses.get(found.controller_id, ""), why=why)


def leaders(connection: Connection, places: Sequence[Place]) -> dict[Place, str]:
    """Return "host:port" of the leader of each of these partitions that has one, as this node believes."""
    found = metadata_of(connection, list(dict.fromkeys(place.topic for place in places)))
    addresses = addresses_of(found)
    named = {
        Place(topic.name, each.partition_index): addresses.get(each.leader_id, "")
        for topic in _listed(found.topics)
        for each in _listed(topic.partitions)
    }
    return {place: named[place] for place in places if named.get(place)}


def metadata_of(connection: Connection, topics: Sequence[str]) -> Any:
    """Return kio's answer about all brokers and these topics; a missing topic is not created."""
    request, response = _METADATA
    wanted = tuple(request.MetadataRequestTopic(name=topic) for topic in topics)
    asked = request.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    return connection.ask(asked, response.MetadataResponse)


def addresses_of(found: Any) -> dict[int, str]:
    """Return "host:port" of each broker in a metadata answer, by its id."""
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in _listed(found.brokers)}


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
    request, response = _PRODUCE[7 if zstd else 3]
    data = {
        place: request.PartitionProduceData(index=place.partition, records=batches[place]) for place in batches
    }
    asked = request.ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout=timedelta(seconds=timeout_s),
        topic_data=tuple(
            request.TopicProduceData(name=topic, partition_data=parts) for topic, parts in _by_topic(data).items()
        ),
    )
    if acks == 0:
        connection.send(asked)
        return {}
    found = connection.ask(asked, response.ProduceResponse)
    results = [
        (Place(of_topic.name, each.index), Produced(error=each.error_code, base_offset=each.base_offset))
        for of_topic in _listed(found.responses)
        for each in _listed(of_topic.partition_responses)
    ]
    return _each(results, batches)


def producer_id(connection: Connection) -> tuple[int, int]:
    """
    Ask for a producer's id; return it, and its epoch.

    Raises:
        NoAnswer: the node gives none now.
    """
    request, response = _INIT_PRODUCER_ID
    asked = request.InitProducerIdRequest(transactional_id=None, transaction_timeout=timedelta(minutes=1))
    found = connection.ask(asked, response.InitProducerIdResponse)
    if found.error_code is not ErrorCode.none:
        raise NoAnswer(f"InitProducerId: {found.error_code.name}; expected an id")
    return found.producer_id, found.producer_epoch


def fetch(connection: Connection, topic: str, partition: int, offset: int) -> Fetched:
    """Fetch from an offset as a consumer does, waiting a little when there is no data yet."""
    found = _fetch(connection, topic, partition, offset, 5)
    if found.error is ErrorCode.unsupported_compression_type:
        found = _fetch(connection, topic, partition, offset, 10)
    return found


def _fetch(connection: Connection, topic: str, partition: int, offset: int, version: int) -> Fetched:
    place = Place(topic, partition)
    return fetch_each(connection, {place: offset}, version=version)[place]


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
        version: 5, or 10, which zstd needs (KIP-110).
        wait_ms: how long the broker may wait if it has no data.
        max_bytes: the limit of the answer, and of each partition's data.
    """
    request, response = _FETCH[version]
    parts = {
        place: request.FetchPartition(
            partition=place.partition, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        for place, offset in offsets.items()
    }
    since_v7 = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": ()} if version >= 7 else {}
    asked = request.FetchRequest(
        replica_id=_CONSUMER,
        max_wait=timedelta(milliseconds=wait_ms),
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=_READ_UNCOMMITTED,
        topics=tuple(
            request.FetchTopic(topic=topic, partitions=of_topic) for topic, of_topic in _by_topic(parts).items()
        ),
        **since_v7,
    )
    found = connection.ask(asked, response.FetchResponse)
    results = [
        (
            Place(of_topic.topic, each.partition_index),
            Fetched(
                error=each.error_code,
                high_watermark=each.high_watermark,
                log_start=each.log_start_offset,
                records=bytes(each.records or b""),
            ),
        )
        for of_topic in _listed(found.responses)
        for each in _listed(of_topic.partitions)
    ]
    return _each(results, offsets)


def earliest(connection: Connection, topic: str, partition: int) -> int:
    """Return where a partition's log starts, -1 if its leader does not say."""
    request, response = _LIST_OFFSETS
    asked = request.ListOffsetsPartition(partition_index=partition, timestamp=_EARLIEST)
    topics = (request.ListOffsetsTopic(name=topic, partitions=(asked,)),)
    found = connection.ask(
        request.ListOffsetsRequest(replica_id=_CONSUMER, topics=topics), response.ListOffsetsResponse
    )
    (of_topic,) = the_one(found.topics)
    (each,) = the_one(of_topic.partitions)
    return int(each.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The answer to a deletion of records; low_watermark is -1 on error."""

    error: ErrorCode
    low_watermark: int


def delete_records(
    connection: Connection, topic: str, partition: int, before: int, *, timeout_s: float
) -> Deleted:
    """Ask a leader, once, to delete the records before an offset (-1: all that are committed)."""
    request, response = _DELETE_RECORDS
    part = request.DeleteRecordsPartition(partition_index=partition, offset=before)
    asked = request.DeleteRecordsRequest(
        topics=(request.DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout=timedelta(seconds=timeout_s)
    )
    found = connection.ask(asked, response.DeleteRecordsResponse)
    (of_topic,) = the_one(found.topics)
    (each,) = the_one(of_topic.partitions)
    return Deleted(error=each.error_code, low_watermark=each.low_watermark)


def alter_topic(connection: Connection, topic: str, setting: str, to: str) -> tuple[ErrorCode, str]:
    """Ask any broker, once, to give a topic this setting, and no other of its own; return its error and text."""
    request, response = _ALTER_CONFIGS
    config = request.AlterableConfig(name=setting, value=to)
    resource = request.AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=(config,))
    asked = request.AlterConfigsRequest(resources=(resource,), validate_only=False)
    (each,) = the_one(connection.ask(asked, response.AlterConfigsResponse).responses)
    return each.error_code, each.error_message or ""


def shown(assignments: Sequence[Sequence[int]]) -> str:
    """Return the broker ids of a topic's partitions as messages show them."""
    return ", ".join(str(list(ids)) for ids in assignments)


def _listed(items: Sequence[Any] | None) -> Sequence[Any]:
    """Return the items of an array that may not be null, which kio does not check."""
    if items is None:
        raise NoAnswer("a null array in an answer; expected its entries")
    return items


def _by_topic(parts: Mapping[Place, T]) -> dict[str, tuple[T, ...]]:
    """Return what a request has for each topic: an entry for each partition."""
    found: dict[str, tuple[T, ...]] = {}
    for place, part in parts.items():
        found[place.topic] = (*found.get(place.topic, ()), part)
    return found


def _each(results: Sequence[tuple[Place, T]], asked: Mapping[Place, object]) -> dict[Place, T]:
    """Return the results by partition if there is exactly one for each that was asked, as there must be."""
    found = dict(results)
    if len(results) != len(asked) or found.keys() != asked.keys():
        had, expected = (", ".join(map(str, places)) or "none" for places in (dict(results), asked))
        raise NoAnswer(f"{len(results)} entries in an answer: {had}; expected one for each of {expected}")
    return found


def the_one(items: Sequence[Any] | None) -> Sequence[Any]:
    """Return the items if there is exactly one, as there must be."""
    found = _listed(items)
    if len(found) != 1:
        raise NoAnswer(f"{len(found)} entries in an answer; expected 1, for the requested topic or partition")
    return found
