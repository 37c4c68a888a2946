"""The peer's side of the wire, on kio alone: frames, versions, and comparison of messages."""

from __future__ import annotations

import io
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

from kio.serial import entity_reader, entity_writer

from targets.broker.core import messages as m
from targets.broker.core.messages import Payload
from targets.broker.wire import Incoming, encode_request, versions
from targets.broker.wire.entities import fill, item_type, request_type, response_type
from targets.broker.wire.scalars import Pieces
from targets.broker.wire.versions import ROWS
from tests.broker.log.batches import produced_batch
from tests.broker.wire.samples import PEER

LACKING = {
    "current_leader_epoch": -1,
    "log_start_offset": -1,
    "leader_epoch": -1,
    "replica_id": -2,
    "broker_epoch": -1,
    "topic_id": 0,
    "session_id": 0,
    "session_epoch": -1,
}
PEER_VERSIONS = [(key, v) for key in PEER for v in range(ROWS[key].first, ROWS[key].last + 1)]
ALL_VERSIONS = [(key, v) for key, row in ROWS.items() for v in range(row.first, row.last + 1)]


def body_of(frame: Payload | Pieces) -> bytes:
    """Check a frame's length and return its body; a frame in pieces is joined."""
    frame = b"".join(frame) if isinstance(frame, list) else bytes(frame)
    assert len(frame) - 4 == int.from_bytes(frame[:4])
    return frame[4:]


def request_frame(key: int, version: int, entity: Any, client_id: str | None = "c", tail: bytes = b"") -> bytes:
    """Return a request's frame without its length, written by kio alone."""
    out = io.BytesIO()
    header = fill(
        type(entity).__header_schema__,
        request_api_key=key,
        request_api_version=version,
        correlation_id=77,
        client_id=client_id,
    )
    entity_writer(type(header))(out, header)
    entity_writer(type(entity))(out, entity)
    return out.getvalue() + tail


def kio_response(frame: Payload | Pieces, key: int, version: int) -> Any:
    """Read a response with kio alone."""
    entity = response_type(key, version)
    header, at = entity_reader(entity.__header_schema__)(body_of(frame), 0)
    assert 77 == header.correlation_id
    value, size = entity_reader(entity)(body_of(frame), at)
    assert len(body_of(frame)) == at + size
    return value


def incoming(key: int, version: int) -> Incoming:
    return Incoming(api_key=key, api_version=version, correlation_id=77, client_id="c")


def without(message: Any, entity: Any) -> Any:
    """Return the message with every field that the version cannot carry set to its placeholder, recursively."""
    carried = {field.name for field in fields_below(entity)}

    def strip(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(strip(item) for item in value)
        if not is_dataclass(value) or isinstance(value, m.Batch | m.TopicPartition | type):
            return value
        changes = {
            field.name: LACKING[field.name]
            if field.name in LACKING and field.name not in carried
            else strip(getattr(value, field.name))
            for field in fields(value)
        }
        return replace(value, **changes)

    return strip(message)


def fields_below(entity: Any) -> list[Any]:
    """Return the fields of an entity and of all nested entities."""
    found = list(fields(entity))
    for field in fields(entity):
        if "tuple[" in str(field.type):
            item = item_type(entity, field.name)
            found += fields_below(item) if is_dataclass(item) else []
    return found


def messages_equal(expected: Any, actual: Any) -> bool:
    """Compare two messages; payloads compare by content, so a view equals its bytes."""
    if isinstance(expected, m.Batch):
        return bytes(expected.payload) == bytes(actual.payload) and replace(expected, payload=b"") == replace(
            actual, payload=b""
        )
    if isinstance(expected, tuple):
        return len(expected) == len(actual) and all(map(messages_equal, expected, actual))
    if is_dataclass(expected) and not isinstance(expected, type):
        return type(expected) is type(actual) and all(
            messages_equal(getattr(expected, f.name), getattr(actual, f.name)) for f in fields(expected)
        )
    return bool(expected == actual)


def a_frame(key: int, version: int) -> bytes:
    """Return the frame of a valid request, without its length."""
    if key in PEER:
        return body_of(encode_request(PEER[key][0], version=version, correlation_id=1, client_id="c"))
    entity = request_type(key, version)
    values: dict[str, Any] = {
        "transactional_id": None,
        "transaction_timeout": timedelta(0),
        "acks": 1,
        "timeout": timedelta(0),
        "topic_data": (),
        "topics": (),
        "topic_names": ("t",),
        "key": "g",
        "key_type": 0,
        "client_software_name": "n",
        "client_software_version": "1",
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
        "resources": (),
        "include_synonyms": True,
        "include_documentation": False,
    }
    if key == versions.PRODUCE:
        topic = item_type(entity, "topic_data")
        partition = item_type(topic, "partition_data")(index=0, records=produced_batch())
        values["topic_data"] = (topic(name="t", partition_data=(partition,)),)
    if key == versions.METADATA:
        values["topics"] = (item_type(entity, "topics")(name="t"),)
    if key == versions.CREATE_TOPICS:
        values |= {"topics": (_new_topic(item_type(entity, "topics")),), "validate_only": False}
    if key == versions.CREATE_PARTITIONS:
        topic = item_type(entity, "topics")
        placed = item_type(topic, "assignments")(broker_ids=(2, 1))
        more = (topic(name="t", count=3, assignments=(placed,)), topic(name="u", count=9, assignments=None))
        values |= {"topics": more, "validate_only": True}
    if key == versions.ELECT_LEADERS:
        named = item_type(entity, "topic_partitions")(topic="t", partitions=(1, 0))
        values |= {"election_type": 1, "topic_partitions": (named,)}
    if key == versions.ALTER_PARTITION_REASSIGNMENTS:
        topic = item_type(entity, "topics")
        partition = item_type(topic, "partitions")
        wanted = (partition(partition_index=0, replicas=(2, 3)), partition(partition_index=1, replicas=None))
        values["topics"] = (topic(name="t", partitions=wanted),)
    if key == versions.LIST_PARTITION_REASSIGNMENTS:
        values["topics"] = (item_type(entity, "topics")(name="t", partition_indexes=(0, 1)),)
    if key == versions.DESCRIBE_CONFIGS:
        resource = item_type(entity, "resources")
        values["resources"] = (resource(resource_type=2, resource_name="t", configuration_keys=("retention.ms",)),)
    if key in (versions.ALTER_CONFIGS, versions.INCREMENTAL_ALTER_CONFIGS):
        resource = item_type(entity, "resources")
        setting = fill(item_type(resource, "configs"), name="retention.ms", value="1", config_operation=2)
        altered = resource(resource_type=2, resource_name="t", configs=(setting,))
        values |= {"resources": (altered,), "validate_only": True}
    if key == versions.DESCRIBE_LOG_DIRS:
        values["topics"] = (item_type(entity, "topics")(topic="t", partitions=(0, 1)),)
    return request_frame(key, version, fill(entity, **values))


def _new_topic(entity: Any) -> Any:
    """Return a topic with an item in each of its arrays."""
    assignment = item_type(entity, "assignments")(partition_index=0, broker_ids=(1, 2))
    config = item_type(entity, "configs")(name="retention.ms", value="1")
    return entity(name="t", num_partitions=-1, replication_factor=-1, assignments=(assignment,), configs=(config,))
