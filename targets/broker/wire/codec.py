"""
Kafka's bytes to the core's messages and back: Produce and Fetch by hand, all others with kio.

Frames come in without their length (FrameSplitter removed it) and go out with it, in pieces if they carry
records: records are not copied in either direction.
Reading any bytes returns a message or raises WireError; the driver then closes that connection.
A version that is not served raises WireError, as Kafka closes the connection, except for ApiVersions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from targets.broker.core.messages import (
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    Payload,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
    StopReplicaRequest,
)
from targets.broker.limits import Limits
from targets.broker.wire import (
    admin,
    control,
    deletion,
    describing,
    fetch,
    handshake,
    offsets,
    placement,
    produce,
    producer_ids,
    versions,
)
from targets.broker.wire.bounds import check_items
from targets.broker.wire.entities import is_flexible, read_entity, request_type, response_type
from targets.broker.wire.frames import correlation_of
from targets.broker.wire.produce import SplitBatches
from targets.broker.wire.scalars import (
    NO_TAGS,
    Items,
    Pieces,
    WireError,
    count_bytes,
    read_nullable_text,
    skip_tags,
    text_bytes,
    unlimited,
)
from targets.broker.wire.versions import ROWS, Rows
from targets.broker.wire.writing import entity_bytes

# The start of every version of the request header: api key, version, correlation id, client id's length.
_HEADER_START: Final = struct.Struct(">hhih")
_HEADER: Final = struct.Struct(">hhi")
_CLIENT_ID_AT: Final = _HEADER.size
# The start of every answer here, after its length: the correlation id, without tagged fields.
_FRAME_START: Final = struct.Struct(">ii")
RESPONSE_HEADER_BYTES: Final = 4
_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """
    A request as it came in.

    Exactly one of request and answer is set: `answer` is a whole frame for requests that the wire layer answers by
    itself (ApiVersions, FindCoordinator).
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    request: Request | None = None
    answer: bytes | None = None

    @property
    def expects_answer(self) -> bool:
        """Return False for a Produce with acks=0."""
        return not (isinstance(self.request, ProduceRequest) and self.request.acks == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """Converters of kio's entities of an API; no `ask` if brokers never send it."""

    read_request: Callable[[Any, SplitBatches], Request]
    write_response: Callable[[type[Any], Any], Any]
    ask: type[Any] | None = None
    write_request: Callable[[type[Any], Any], Any] | None = None
    read_response: Callable[[Any, SplitBatches], Response] | None = None


_APIS: Final[Mapping[int, _Api]] = {
    versions.LIST_OFFSETS: _Api(
        read_request=offsets.read_list_request,
        write_response=offsets.write_list_response,
        ask=ListOffsetsRequest,
        write_request=offsets.write_list_request,
        read_response=offsets.read_list_response,
    ),
    versions.METADATA: _Api(
        read_request=admin.read_metadata_request, write_response=admin.write_metadata_response
    ),
    versions.LEADER_AND_ISR: _Api(
        read_request=control.read_leader_request,
        write_response=control.write_response,
        ask=LeaderAndIsrRequest,
        write_request=control.write_leader_request,
        read_response=control.read_leader_response,
    ),
    versions.STOP_REPLICA: _Api(
        read_request=control.read_stop_request,
        write_response=control.write_response,
        ask=StopReplicaRequest,
        write_request=control.write_stop_request,
        read_response=control.read_stop_response,
    ),
    versions.CREATE_TOPICS: _Api(
        read_request=admin.read_create_request, write_response=admin.write_create_response
    ),
    versions.CREATE_PARTITIONS: _Api(
        read_request=admin.read_partitions_request, write_response=admin.write_partitions_response
    ),
    versions.ELECT_LEADERS: _Api(
        read_request=placement.read_elect_request, write_response=placement.write_elect_response
    ),
    versions.ALTER_PARTITION_REASSIGNMENTS: _Api(
        read_request=placement.read_alter_request, write_response=placement.write_alter_response
    ),
    versions.LIST_PARTITION_REASSIGNMENTS: _Api(
        read_request=placement.read_list_request, write_response=placement.write_list_response
    ),
    versions.DELETE_TOPICS: _Api(
        read_request=admin.read_delete_request, write_response=admin.write_delete_response
    ),
    versions.DELETE_RECORDS: _Api(
        read_request=deletion.read_delete_records_request, write_response=deletion.write_delete_records_response
    ),
    versions.DESCRIBE_CONFIGS: _Api(
        read_request=describing.read_configs_request, write_response=describing.write_configs_response
    ),
    versions.ALTER_CONFIGS: _Api(
        read_request=describing.read_alter_request, write_response=describing.write_alter_response
    ),
    versions.INCREMENTAL_ALTER_CONFIGS: _Api(
        read_request=describing.read_incremental_request, write_response=describing.write_alter_response
    ),
    versions.DESCRIBE_LOG_DIRS: _Api(
        read_request=describing.read_log_dirs_request, write_response=describing.write_log_dirs_response
    ),
    versions.INIT_PRODUCER_ID: _Api(
        read_request=producer_ids.read_request, write_response=producer_ids.write_response
    ),
    versions.OFFSET_FOR_LEADER_EPOCH: _Api(
        read_request=offsets.read_epoch_request,
        write_response=offsets.write_epoch_response,
        ask=OffsetForLeaderEpochRequest,
        write_request=offsets.write_epoch_request,
        read_response=offsets.read_epoch_response,
    ),
}
_KEY_OF: Final[Mapping[type[Any], int]] = {
    FetchRequest: versions.FETCH,
    **{api.ask: key for key, api in _APIS.items() if api.ask},
}


def key_of(request: Request) -> int:
    """Return the api key of a request between brokers."""
    return _KEY_OF[type(request)]


def decode_request(
    frame: Payload, *, split_batches: SplitBatches, rows: Rows = ROWS, limits: Limits = _LIMITS
) -> Incoming:
    """
    Read a request's frame.

    Args:
        split_batches: validates a producer's bytes; payloads are views into the frame.
        rows: the APIs that the receiving broker knows.
        limits: how many items a request may have.

    Raises:
        WireError: for any unreadable bytes; no other exception.
    """
    if len(frame) < _HEADER_START.size:
        raise WireError(f"request of {len(frame)} bytes; expected a header")
    key, version, correlation_id, _ = _HEADER_START.unpack_from(frame)
    row = rows.get(key)
    if row is None:
        raise WireError(f"api key {key}; expected one of {', '.join(map(str, sorted(rows)))}")
    if not row.first <= version <= row.last:
        if key == versions.API_VERSIONS:
            # The rest may have any form; the client id has had its place since v1.
            unknown = b"".join(_framed(correlation_id, [entity_bytes(handshake.api_versions(version, rows))]))
            return Incoming(
                api_key=key, api_version=version, correlation_id=correlation_id, client_id=None, answer=unknown
            )
        raise WireError(f"{row.name} v{version}; expected v{row.first} to v{row.last}")
    try:
        read = _BY_HAND.get(key, _read_by_kio)
        asked = _Asked(frame, key, version, rows, _items(key, limits), split_batches)
        client_id, request, answer, end = read(asked)
    except WireError as error:
        raise WireError(f"{row.name} v{version}: {error}") from error
    except struct.error as error:
        raise WireError(
            f"{row.name} v{version} in {len(frame)} bytes: {error}; expected a whole message"
        ) from error
    if end != len(frame):
        raise WireError(f"{row.name} v{version}: {len(frame) - end} bytes after its end; expected none")
    return Incoming(
        api_key=key,
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
        request=request,
        answer=None if answer is None else b"".join(_framed(correlation_id, answer)),
    )


class _Asked(NamedTuple):
    """A request to be read: its frame, what its header says, and what holds for its connection."""

    frame: Payload
    key: int
    version: int
    rows: Rows
    items: Items
    split: SplitBatches


# The client id, the request, the wire layer's own answer, and the offset after the request.
_Read: TypeAlias = tuple[str | None, Request | None, Pieces | None, int]


def _items(key: int, limits: Limits) -> Items:
    if key in versions.COMMANDS:
        return Items(limits.command_items_max, "command_items_max")
    return Items(limits.request_items_max, "request_items_max")


def _read_by_kio(asked: _Asked) -> _Read:
    frame, key, version = asked.frame, asked.key, asked.version
    entity_type = request_type(key, version)
    header, at = read_entity(entity_type.__header_schema__, frame, 0)
    check_items(entity_type, frame, at, asked.items)
    entity, end = read_entity(entity_type, frame, at)
    request: Request | None = None
    answer: Any = None
    if key == versions.API_VERSIONS:
        answer = handshake.api_versions(version, asked.rows)
    elif key == versions.FIND_COORDINATOR:
        answer = handshake.no_coordinator(version)
    else:
        request = _APIS[key].read_request(entity, asked.split)
    return header.client_id, request, None if answer is None else [entity_bytes(answer)], end


def _read_produce(asked: _Asked) -> _Read:
    client_id, at = read_nullable_text(asked.frame, _CLIENT_ID_AT)
    request, end = produce.read_request(asked.frame, at, asked.version, asked.split, asked.items)
    return client_id, request, None, end


def _read_fetch(asked: _Asked) -> _Read:
    client_id, at = read_nullable_text(asked.frame, _CLIENT_ID_AT)
    if is_flexible(request_type(asked.key, asked.version)):
        at = skip_tags(asked.frame, at)
    request, end = fetch.read_request(asked.frame, at, asked.version, asked.items)
    return client_id, request, None, end


_BY_HAND: Final = {versions.PRODUCE: _read_produce, versions.FETCH: _read_fetch}


def encode_response(incoming: Incoming, response: Response) -> Pieces:
    """Write the answer to a request, in that request's version, as the pieces of a whole frame."""
    key, version = incoming.api_key, incoming.api_version
    if isinstance(response, ProduceResponse):
        pieces = produce.write_response(version, response)
    elif isinstance(response, FetchResponse):
        pieces = fetch.write_response(version, response)
    else:
        pieces = [entity_bytes(_APIS[key].write_response(response_type(key, version), response))]
    return _framed(incoming.correlation_id, pieces, flexible=is_flexible(response_type(key, version)))


def encode_request(request: Request, *, version: int, correlation_id: int, client_id: str) -> bytes:
    """Write a request from broker to broker as a whole frame; `peer_version` returns the version."""
    key = _KEY_OF[type(request)]
    if isinstance(request, FetchRequest):
        body = fetch.write_request(version, request)
    else:
        write = _APIS[key].write_request
        assert write is not None, f"{ROWS[key].name}: brokers never ask it"
        body = entity_bytes(write(request_type(key, version), request))
    tags = NO_TAGS if is_flexible(request_type(key, version)) else b""
    message = _HEADER.pack(key, version, correlation_id) + text_bytes(client_id) + tags + body
    return count_bytes(len(message)) + message


def decode_response(
    frame: Payload,
    request: Request,
    *,
    version: int,
    correlation_id: int,
    split_batches: SplitBatches,
) -> Response:
    """
    Read the answer to a request that `encode_request` wrote.

    Args:
        split_batches: validates a leader's bytes, which may begin at any offset.

    Raises:
        WireError: for any unreadable bytes; no other exception.
    """
    if correlation_of(frame) != correlation_id:
        raise WireError(f"response to {correlation_of(frame)}; expected one to {correlation_id}")
    key = _KEY_OF[type(request)]
    response: Response
    try:
        at = RESPONSE_HEADER_BYTES
        if is_flexible(response_type(key, version)):
            at = skip_tags(frame, at)
        if key == versions.FETCH:
            response, end = fetch.read_response(frame, at, version, split_batches)
        else:
            response, end = _response_by_kio(frame, at, key, version, split_batches)
    except WireError as error:
        raise WireError(f"{ROWS[key].name} v{version}: {error}") from error
    except struct.error as error:
        text = f"{ROWS[key].name} v{version} in {len(frame)} bytes: {error}; expected a whole message"
        raise WireError(text) from error
    if end != len(frame):
        raise WireError(f"{ROWS[key].name} v{version}: {len(frame) - end} bytes after its end; expected none")
    return response


def _response_by_kio(frame: Payload, at: int, key: int, version: int, split: SplitBatches) -> tuple[Response, int]:
    read = _APIS[key].read_response
    assert read is not None, f"{ROWS[key].name}: brokers never ask it"
    entity_type = response_type(key, version)
    check_items(entity_type, frame, at, unlimited(frame))
    entity, end = read_entity(entity_type, frame, at)
    return read(entity, split), end


def _framed(correlation_id: int, pieces: Pieces, *, flexible: bool = False) -> Pieces:
    """Prepend the length and the response's header to the pieces; an answer to ApiVersions is never flexible."""
    first, *others = pieces
    tags = NO_TAGS if flexible else b""
    length = RESPONSE_HEADER_BYTES + len(tags) + sum(len(piece) for piece in pieces)
    return [_FRAME_START.pack(length, correlation_id) + tags + bytes(first), *others]
