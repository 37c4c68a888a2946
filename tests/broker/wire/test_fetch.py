"""Fetch sessions on the wire (KIP-227): ids, epochs, what leaves a session, and a request refused as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader

from targets.broker.core.messages import ErrorCode, FetchRequest, FetchResponse, TopicPartition
from targets.broker.log import split_produced, split_stored
from targets.broker.wire import (
    WireError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    versions,
)
from targets.broker.wire.entities import request_type
from tests.broker.wire.kio_side import body_of, incoming, kio_response, without
from tests.broker.wire.samples import A0, PEER

GONE = (TopicPartition("gone", 3), TopicPartition("away", 0), TopicPartition("gone", 1))
WITH_SESSIONS = range(7, versions.ROWS[versions.FETCH].last + 1)


def continued(**changes: Any) -> FetchRequest:
    """Return a request that goes on with a session and names one partition, and three that leave."""
    request, _ = PEER[versions.FETCH]
    assert isinstance(request, FetchRequest)
    named = {"session_id": 5, "session_epoch": 8, "partitions": request.partitions[:1], "forgotten": GONE}
    return replace(request, **{**named, **changes})


def written(request: FetchRequest, version: int) -> bytes:
    return body_of(encode_request(request, version=version, correlation_id=77, client_id="c"))


@pytest.mark.parametrize("version", WITH_SESSIONS)
def test_what_leaves_a_session_is_read_as_it_was_written(version: int) -> None:
    """Source: KIP-227; Kafka's FetchRequest.json, ForgottenTopicsData from v7 on."""
    found = decode_request(written(continued(), version), split_batches=split_produced).request
    assert isinstance(found, FetchRequest)
    assert sorted(GONE) == sorted(found.forgotten)
    kept = without(continued(forgotten=()), request_type(versions.FETCH, version))
    assert kept == replace(found, forgotten=())


@pytest.mark.parametrize("version", range(7, 12))
def test_kio_reads_who_leaves_and_which_session_it_is(version: int) -> None:
    entity = request_type(versions.FETCH, version)
    frame = written(continued(), version)
    _, at = entity_reader(entity.__header_schema__)(frame, 0)
    found, _ = entity_reader(entity)(frame, at)
    assert (5, 8) == (found.session_id, found.session_epoch)
    assert {"gone": (3, 1), "away": (0,)} == {each.topic: each.partitions for each in found.forgotten_topics_data}


@pytest.mark.parametrize("version", range(4, 7))
def test_request_that_names_changes_alone_is_not_written_without_a_session(version: int) -> None:
    """A leader that knows no sessions would take it for a fetch of these partitions and no others."""
    with pytest.raises(WireError, match=f"session epoch 8 in v{version}; expected v7 or later"):
        written(continued(), version)


@pytest.mark.parametrize("version", WITH_SESSIONS)
def test_refusal_of_a_whole_request_is_read_as_it_was_written(version: int) -> None:
    """Source: KIP-227: FETCH_SESSION_ID_NOT_FOUND and INVALID_FETCH_SESSION_EPOCH are of no partition."""
    refusal = FetchResponse(results=(), error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    frame = body_of(encode_response(incoming(versions.FETCH, version), refusal))
    found = decode_response(frame, continued(), version=version, correlation_id=77, split_batches=split_stored)
    assert refusal == found


def test_kio_reads_the_error_of_a_whole_request() -> None:
    refusal = FetchResponse(results=(), error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    found = kio_response(encode_response(incoming(versions.FETCH, 11), refusal), versions.FETCH, 11)
    assert (KioErrorCode.fetch_session_id_not_found, 0, ()) == (
        found.error_code,
        found.session_id,
        found.responses,
    )


@pytest.mark.parametrize("version", WITH_SESSIONS)
def test_fetch_and_answer_without_news_take_no_more_bytes_than_a_name(version: int) -> None:
    """Source: KIP-227, Motivation: both grew with the number of partitions, whatever happened in them."""
    request = continued(partitions=(), forgotten=())
    answer = body_of(encode_response(incoming(versions.FETCH, version), FetchResponse(results=(), session_id=5)))
    assert (len(written(request, version)) < 60, len(answer) < 24) == (True, True)
    assert len(written(continued(forgotten=()), version)) > len(written(request, version)) + len(A0.topic)
