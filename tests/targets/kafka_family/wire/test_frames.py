"""Frames are split correctly however their bytes arrive, and a header cut short is Unreadable."""

from __future__ import annotations

import struct

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioHeader

from harness.target.length_prefix import LENGTH_MAX, frame_size
from harness.target.wire import NotFramedError
from targets.kafka_family.wire.frames import (
    API_NAMES,
    MESSAGES,
    RequestHeader,
    Unreadable,
    answer_correlation,
    api_word,
    request_header,
)
from tests.targets.kafka_family.wire.wire import encoded, fetch, frame, request


@pytest.mark.parametrize("length", [-1, -(2**31), LENGTH_MAX + 1, 0x72756F6B])
def test_frame_is_none_when_its_length_is_none(length: int) -> None:
    with pytest.raises(NotFramedError, match=f"frame length {length}; expected a frame"):
        frame_size(b".." + struct.pack(">i", length), 2)


def test_frame_has_its_length_and_four_bytes_once_these_are_there() -> None:
    assert (len(frame(b"abc")), 4) == (frame_size(b"." + frame(b"abc") + b"more", 1), frame_size(frame(b""), 0))
    assert [0, 0, 0, 0] == [frame_size(frame(b"abc")[:end], 0) for end in range(4)]


def test_request_header_reads_what_kio_writes_with_a_tail() -> None:
    data = encoded(KioHeader(request_api_key=1, request_api_version=5, correlation_id=7, client_id="broker-3-x"))
    expected = RequestHeader(api_key=1, version=5, correlation=7, client_id="broker-3-x")
    assert (expected, len(data)) == request_header(b"....." + data + b"tail", 5)


def test_request_header_is_unreadable_when_cut_anywhere() -> None:
    data = encoded(KioHeader(request_api_key=1, request_api_version=5, correlation_id=7, client_id="broker-3-x"))
    for end in range(len(data)):
        with pytest.raises(Unreadable):
            request_header(data[:end], 0)


def test_request_header_has_no_client_id_when_it_is_null_or_the_version_has_none() -> None:
    assert "" == request_header(request(3, 1, 9, None), 4)[0].client_id
    old_shutdown = struct.pack(">hhii", 7, 0, 9, 2)
    assert (RequestHeader(api_key=7, version=0, correlation=9, client_id=""), 8) == request_header(old_shutdown, 0)


def test_request_header_is_unreadable_when_the_client_id_is_no_text() -> None:
    with pytest.raises(Unreadable, match="UTF-8"):
        request_header(struct.pack(">hhih", 1, 5, 7, 2) + b"\xff\xfe", 0)
    with pytest.raises(Unreadable, match="length -2"):
        request_header(struct.pack(">hhih", 1, 5, 7, -2), 0)


def test_answer_correlation_is_unreadable_when_cut() -> None:
    assert (77, 4) == answer_correlation(struct.pack(">i", 77) + b"tail", 0)
    with pytest.raises(Unreadable):
        answer_correlation(b"\x00\x00\x00", 0)


def test_api_has_its_general_word_or_kafkas_name_or_its_number() -> None:
    assert ["fetch", "command", "stop-command", "epoch-question", "Metadata", "api-999"] == [
        api_word(key) for key in (1, 4, 5, 23, 3, 999)
    ]
    assert len(API_NAMES) == len(set(API_NAMES.values())) == len(MESSAGES) + 4
    assert "fetch" == request_header(fetch(3), 4)[0].api
