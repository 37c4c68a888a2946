"""The requests that the wire answers without the core, and how it reads a peer's supported versions."""

from __future__ import annotations

import struct

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from targets.broker.core.rules import PROTOCOLS
from targets.broker.log import split_produced
from targets.broker.wire import Incoming, WireError, client_rows, decode_request, peer_rows, versions
from targets.broker.wire.entities import fill, request_type
from targets.broker.wire.handshake import ask_versions, common_version, read_versions
from targets.broker.wire.versions import ROWS
from tests.broker.wire.kio_side import body_of, kio_response, request_frame


def ask(version: int) -> Incoming:
    entity = request_type(versions.API_VERSIONS, version)
    sent = fill(entity, client_software_name="n", client_software_version="1")
    return decode_request(request_frame(versions.API_VERSIONS, version, sent), split_batches=split_produced)


@pytest.mark.parametrize("version", range(4))
def test_api_versions_lists_the_table(version: int) -> None:
    found = ask(version)
    assert found.request is None
    assert found.answer is not None
    answer = kio_response(found.answer, versions.API_VERSIONS, version)
    assert KioErrorCode.none == answer.error_code
    assert {key: (row.advertised_first, row.last) for key, row in ROWS.items()} == {
        row.api_key: (row.min_version, row.max_version) for row in answer.api_keys
    }


def test_api_versions_lists_only_what_the_protocol_knows() -> None:
    sent = fill(request_type(versions.API_VERSIONS, 0))
    frame = request_frame(versions.API_VERSIONS, 0, sent)
    for protocol, newest in (("hw", None), ("kip101", 0), ("kip279", 1), ("kip320", 2)):
        for rows in (peer_rows(protocol, PROTOCOLS[protocol]), client_rows(protocol, PROTOCOLS[protocol])):
            answer = decode_request(frame, split_batches=split_produced, rows=rows).answer
            assert answer is not None
            told = {row.api_key: row.max_version for row in kio_response(answer, 18, 0).api_keys}
            assert newest == told.get(versions.OFFSET_FOR_LEADER_EPOCH)


def test_only_brokers_are_told_the_versions_that_carry_a_topics_id() -> None:
    frame = request_frame(versions.API_VERSIONS, 0, fill(request_type(versions.API_VERSIONS, 0)))
    for rows, newest in ((peer_rows, [12, 6, 4]), (client_rows, [11, 5, 3])):
        answer = decode_request(
            frame, split_batches=split_produced, rows=rows("kip380", PROTOCOLS["kip380"])
        ).answer
        assert answer is not None
        told = {row.api_key: row.max_version for row in kio_response(answer, 18, 0).api_keys}
        keys = (versions.FETCH, versions.LIST_OFFSETS, versions.OFFSET_FOR_LEADER_EPOCH)
        assert newest == [told[key] for key in keys]


def test_question_for_versions_is_what_every_broker_answers() -> None:
    """The request is v0: it has no body, and its response is the oldest version."""
    frame = ask_versions(77, "x")
    assert struct.pack(">hhih1s", 18, 0, 77, 1, b"x") == body_of(frame)
    answer = decode_request(body_of(frame), split_batches=split_produced).answer
    assert answer is not None
    assert {key: (row.advertised_first, row.last) for key, row in ROWS.items()} == read_versions(
        body_of(answer), 77
    )


@pytest.mark.parametrize(
    ("theirs", "common"),
    [((0, 9), 9), ((0, 11), 11), ((0, 99), 12), ((4, 4), 4), ((0, 3), -1), ((13, 14), -1)],
)
def test_common_version_is_the_newest_that_both_know(theirs: tuple[int, int], common: int) -> None:
    assert common == common_version(versions.FETCH, ROWS, {versions.FETCH: theirs})


def test_api_that_one_side_does_not_know_has_no_common_version() -> None:
    hw = peer_rows("hw", PROTOCOLS["hw"])
    assert -1 == common_version(versions.OFFSET_FOR_LEADER_EPOCH, hw, {versions.OFFSET_FOR_LEADER_EPOCH: (0, 3)})
    assert -1 == common_version(versions.OFFSET_FOR_LEADER_EPOCH, ROWS, {})


def test_librdkafka_is_told_produce_and_fetch_from_0() -> None:
    """librdkafka derives features from the lowest version: without 0 it does not use record batch v2."""
    assert [0, 0] == [ROWS[key].advertised_first for key in (versions.PRODUCE, versions.FETCH)]


@pytest.mark.parametrize("version", [4, 100, -1])
def test_unknown_version_is_answered_in_v0_with_an_error(version: int) -> None:
    """Source: KIP-511."""
    frame = struct.pack(">hhih", 18, version, 77, -1) + b"\x00whatever"
    found = decode_request(frame, split_batches=split_produced)
    assert found.answer is not None
    answer = kio_response(found.answer, versions.API_VERSIONS, 0)
    assert KioErrorCode.unsupported_version == answer.error_code
    assert len(ROWS) == len(answer.api_keys)


@pytest.mark.parametrize("version", range(3))
def test_find_coordinator_finds_none(version: int) -> None:
    sent = fill(request_type(versions.FIND_COORDINATOR, version), key="g", key_type=0)
    frame = request_frame(versions.FIND_COORDINATOR, version, sent)
    answer = decode_request(frame, split_batches=split_produced).answer
    assert answer is not None
    found = kio_response(answer, versions.FIND_COORDINATOR, version)
    assert (KioErrorCode.coordinator_not_available, -1) == (found.error_code, found.node_id)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (struct.pack(">ihi", 78, 0, 0), "response to 78; expected one to 77"),
        (struct.pack(">ihi", 77, 35, 0), "unsupported_version"),
        (struct.pack(">ihib", 77, 0, 0, 1), "1 bytes after its end"),
        (struct.pack(">ihi", 77, 0, -1), "api_keys: null"),
        (struct.pack(">ihihh", 77, 0, 1, 23, 0), "api_keys: 1 items in 4 bytes; expected 6 bytes for each"),
        (struct.pack(">ihi", 77, 0, 2**31 - 1), "api_keys: 2147483647 items in 0 bytes"),
        (struct.pack(">ih", 77, 999), "expected a whole message"),
        (b"", "0 bytes"),
    ],
)
def test_answer_that_tells_no_versions_is_a_wire_error(answer: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        read_versions(answer, 77)
