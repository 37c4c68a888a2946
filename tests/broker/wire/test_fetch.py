"""The broker has no fetch sessions, and says so to clients that ask for one."""

from __future__ import annotations

import struct
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from targets.broker.log import split_produced
from targets.broker.wire import WireError, decode_request, encode_request, versions
from targets.broker.wire.entities import fill, request_type
from tests.broker.wire.kio_side import body_of, kio_response, request_frame, without
from tests.broker.wire.samples import PEER


@pytest.mark.parametrize(("session", "epoch"), [(0, -1), (0, 0), (5, 0), (5, -1)])
def test_fetch_that_begins_or_ends_a_session_is_a_full_one(session: int, epoch: int) -> None:
    """Source: KIP-227: epoch 0 starts a session, -1 asks for none; both requests name all partitions."""
    request, _ = PEER[versions.FETCH]
    found = decode_request(fetch_in_session(session, epoch), split_batches=split_produced)
    assert without(request, request_type(versions.FETCH, 7)) == found.request


@pytest.mark.parametrize("version", range(7, 12))
def test_fetch_that_goes_on_with_a_session_is_told_that_there_is_none(version: int) -> None:
    """Source: KIP-227: after FETCH_SESSION_ID_NOT_FOUND clients send a full fetch."""
    found = decode_request(fetch_in_session(5, 1, version=version), split_batches=split_produced)
    assert found.request is None and found.answer is not None
    answer = kio_response(found.answer, versions.FETCH, version)
    assert (KioErrorCode.fetch_session_id_not_found, 0, ()) == (
        answer.error_code,
        answer.session_id,
        answer.responses,
    )


def fetch_in_session(session: int, epoch: int, version: int = 7) -> bytes:
    """Return a fetch frame with these session fields."""
    request, _ = PEER[versions.FETCH]
    frame = bytearray(body_of(encode_request(request, version=version, correlation_id=77, client_id="")))
    # Skip the header, replica id, max wait, min bytes, max bytes and isolation level.
    struct.pack_into(">ii", frame, 10 + 4 + 4 + 4 + 4 + 1, session, epoch)
    return bytes(frame)


def test_follower_that_begins_a_session_is_refused() -> None:
    """Between brokers v12 is spoken without sessions."""
    entity = request_type(versions.FETCH, 12)
    sent = fill(
        entity,
        replica_id=1,
        max_wait=timedelta(0),
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        session_id=5,
        session_epoch=1,
        topics=(),
        forgotten_topics_data=(),
        rack_id="",
    )
    with pytest.raises(WireError, match="fetch v12: session epoch 1; expected -1"):
        decode_request(request_frame(versions.FETCH, 12, sent), split_batches=split_produced)
