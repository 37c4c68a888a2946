"""
Requests that the wire layer answers by itself: ApiVersions (api 18), both sides, and FindCoordinator (10).

Source:  KIP-35, KIP-511 (an unknown version is answered in v0 with UNSUPPORTED_VERSION, so that the client
         can choose again).
"""

from __future__ import annotations

import struct
from typing import Any, Final

from kio.schema.errors import ErrorCode as KioErrorCode

from targets.broker.core.messages import Payload
from targets.broker.wire.bounds import check_items
from targets.broker.wire.entities import (
    NO_TIME,
    fill,
    item_type,
    listed,
    read_entity,
    request_type,
    response_type,
)
from targets.broker.wire.frames import correlation_of
from targets.broker.wire.scalars import WireError, count_bytes, text_bytes, unlimited
from targets.broker.wire.versions import API_VERSIONS, FIND_COORDINATOR, NOT_KNOWN, ROWS, Rows
from targets.broker.wire.writing import entity_bytes

_NO_NODE: Final = -1
# Api key, version, correlation id.
_HEADER: Final = struct.Struct(">hhi")
# The one version that every broker answers.
_ASKED_VERSION: Final = 0


def ask_versions(correlation_id: int, client_id: str) -> bytes:
    """Write an ApiVersions request to a peer, as a whole frame."""
    question = request_type(API_VERSIONS, _ASKED_VERSION)()
    header = _HEADER.pack(API_VERSIONS, _ASKED_VERSION, correlation_id) + text_bytes(client_id)
    message = header + entity_bytes(question)
    return count_bytes(len(message)) + message


def read_versions(frame: Payload, correlation_id: int) -> dict[int, tuple[int, int]]:
    """
    Read a peer's answer to ask_versions: api key -> its oldest and newest version.

    Raises:
        WireError: for any unreadable bytes, and when the peer refused; no other exception.
    """
    if correlation_of(frame) != correlation_id:
        raise WireError(f"response to {correlation_of(frame)}; expected one to {correlation_id}")
    entity_type = response_type(API_VERSIONS, _ASKED_VERSION)
    _, offset = read_entity(entity_type.__header_schema__, frame, 0)
    try:
        check_items(entity_type, frame, offset, unlimited(frame))
    except struct.error as error:
        raise WireError(f"api_versions in {len(frame)} bytes: {error}; expected a whole message") from error
    entity, end = read_entity(entity_type, frame, offset)
    if end != len(frame) or entity.error_code is not KioErrorCode.none:
        left = len(frame) - end
        raise WireError(f"api_versions: {entity.error_code!r} and {left} bytes after its end; expected neither")
    return {row.api_key: (row.min_version, row.max_version) for row in listed(entity.api_keys, "api_keys")}


def common_version(key: int, ours: Rows, theirs: dict[int, tuple[int, int]]) -> int:
    """Return the newest version of an API that both sides know, NOT_KNOWN if there is none."""
    if key not in ours or key not in theirs:
        return NOT_KNOWN
    oldest, newest = theirs[key]
    version = min(ours[key].last, newest)
    return version if version >= max(ours[key].first, oldest) else NOT_KNOWN


def api_versions(version: int, rows: Rows) -> Any:
    """Answer ApiVersions in a version: every row of the table; for an unknown version, v0 with an error."""
    known = ROWS[API_VERSIONS].first <= version <= ROWS[API_VERSIONS].last
    entity = response_type(API_VERSIONS, version if known else 0)
    row_type = item_type(entity, "api_keys")
    return fill(
        entity,
        error_code=KioErrorCode.none if known else KioErrorCode.unsupported_version,
        api_keys=tuple(
            fill(row_type, api_key=row.key, min_version=row.advertised_first, max_version=row.last)
            for row in rows.values()
        ),
        throttle_time=NO_TIME,
    )


def no_coordinator(version: int) -> Any:
    """Answer FindCoordinator: there are no groups and no transactions here."""
    return fill(
        response_type(FIND_COORDINATOR, version),
        throttle_time=NO_TIME,
        error_code=KioErrorCode.coordinator_not_available,
        error_message="this broker has no groups and no transactions",
        node_id=_NO_NODE,
        host="",
        port=-1,
    )
