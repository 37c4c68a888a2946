"""Frames are split correctly however their bytes arrive, and a header cut short is Unreadable."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as KioHeader

from harness.fabric.limits import FRAME_BYTES_MAX, HEAD_BYTES, WHOLE_BYTES_MAX
from targets.kafka_family.wire.frames import (
    API_NAMES,
    Part,
    RequestHeader,
    Splitter,
    Unreadable,
    answer_correlation,
    api_name,
    is_whole,
    request_header,
)
from tests.targets.kafka_family.wire.wire import encoded, fetch, frame, request


def test_splitter_gives_each_frame_whole_when_bytes_come_one_by_one() -> None:
    frames = [frame(b""), frame(b"a"), frame(b"bcd" * 50)]
    splitter = Splitter()
    pieces = [piece for byte in b"".join(frames) for piece in splitter.feed(bytes([byte]))]
    assert [(Part.HEAD, each) for each in frames] == pieces


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_splitter_gives_the_same_frames_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, payloads))
    splitter, pieces, place = Splitter(), [], 0
    for step in (*cuts, len(stream)):
        if stream[place : place + step]:
            pieces += splitter.feed(stream[place : place + step])
        place += step
    assert [(Part.HEAD, frame(payload)) for payload in payloads] == pieces


def test_splitter_streams_a_frame_that_is_larger_than_it_gathers() -> None:
    large, small = frame(b"x" * (WHOLE_BYTES_MAX + 10)), frame(b"small")
    stream = large + small
    splitter = Splitter()
    pieces = [
        piece for place in range(0, len(stream), 1500) for piece in splitter.feed(stream[place : place + 1500])
    ]
    assert stream == b"".join(data for _, data in pieces)
    assert [Part.HEAD, Part.REST] == [part for part, _ in pieces][:2]
    assert (Part.HEAD, small) == pieces[-1]
    assert len(pieces[0][1]) >= HEAD_BYTES
    assert (False, True) == (is_whole(pieces[0][1]), is_whole(small))


@pytest.mark.parametrize("length", [-1, -(2**31), FRAME_BYTES_MAX + 1, 0x72756F6B])
def test_splitter_turns_opaque_when_a_length_is_none(length: int) -> None:
    good, bad = frame(b"good"), struct.pack(">i", length) + b"rest"
    splitter = Splitter()
    assert [(Part.HEAD, good), (Part.OPAQUE, bad)] == splitter.feed(good + bad)
    assert (True, length) == (splitter.opaque, splitter.bad_length)
    assert [(Part.OPAQUE, b"more")] == splitter.feed(b"more")


def test_splitter_gives_what_waits_when_it_surrenders() -> None:
    splitter = Splitter()
    assert [] == splitter.feed(frame(b"abc")[:5])
    assert [(Part.OPAQUE, frame(b"abc")[:5])] == splitter.surrender()
    assert [] == splitter.surrender()


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


def test_api_names_are_kafkas_and_an_unknown_key_is_named_by_its_number() -> None:
    assert ["Fetch", "LeaderAndIsr", "OffsetForLeaderEpoch", "api-999"] == [
        api_name(key) for key in (1, 4, 23, 999)
    ]
    assert len(API_NAMES) == len(set(API_NAMES.values()))
    assert "Fetch" == request_header(fetch(3), 4)[0].api
