"""Frames are split correctly however their bytes arrive; the wire says where each ends."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.fabric.limits import FRAME_BYTES_MAX, HEAD_BYTES, WHOLE_BYTES_MAX
from harness.fabric.splitter import Part, Splitter
from harness.target.length_prefix import frame_size, is_whole
from tests.targets.kafka_family.wire.wire import frame


def test_splitter_gives_each_frame_whole_when_bytes_come_one_by_one() -> None:
    frames = [frame(b""), frame(b"a"), frame(b"bcd" * 50)]
    splitter = Splitter(frame_size)
    pieces = [piece for byte in b"".join(frames) for piece in splitter.feed(bytes([byte]))]
    assert [(Part.HEAD, each) for each in frames] == pieces


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_splitter_gives_the_same_frames_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, payloads))
    splitter, pieces, place = Splitter(frame_size), [], 0
    for step in (*cuts, len(stream)):
        if stream[place : place + step]:
            pieces += splitter.feed(stream[place : place + step])
        place += step
    assert [(Part.HEAD, frame(payload)) for payload in payloads] == pieces


def test_splitter_streams_a_frame_that_is_larger_than_it_gathers() -> None:
    large, small = frame(b"x" * (WHOLE_BYTES_MAX + 10)), frame(b"small")
    stream = large + small
    splitter = Splitter(frame_size)
    pieces = [
        piece for place in range(0, len(stream), 1500) for piece in splitter.feed(stream[place : place + 1500])
    ]
    assert stream == b"".join(data for _, data in pieces)
    assert [Part.HEAD, Part.REST] == [part for part, _ in pieces][:2]
    assert (Part.HEAD, small) == pieces[-1]
    assert len(pieces[0][1]) >= HEAD_BYTES
    assert (False, True) == (is_whole(pieces[0][1]), is_whole(small))


@pytest.mark.parametrize("length", [-1, -(2**31), FRAME_BYTES_MAX + 1, 0x72756F6B])
def test_splitter_turns_opaque_where_the_wire_finds_no_frame(length: int) -> None:
    good, bad = frame(b"good"), struct.pack(">i", length) + b"rest"
    splitter = Splitter(frame_size)
    assert [(Part.HEAD, good), (Part.OPAQUE, bad)] == [*splitter.feed(good + bad)]
    assert (True, f"frame length {length}") == (splitter.opaque, splitter.why.partition(";")[0])
    assert [(Part.OPAQUE, b"more")] == [*splitter.feed(b"more")]


def test_splitter_gives_what_waits_when_it_surrenders() -> None:
    splitter = Splitter(frame_size)
    assert [] == [*splitter.feed(frame(b"abc")[:5])]
    assert [(Part.OPAQUE, frame(b"abc")[:5])] == splitter.surrender()
    assert [] == splitter.surrender()


def lines(buffer: bytes, offset: int) -> int:
    """A wire of text: a frame is a line, and its size is not known before its end is there."""
    return buffer.find(b"\n", offset) + 1 - offset if b"\n" in buffer[offset:] else 0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_splitter_finds_the_end_of_frames_whose_size_no_head_says(cuts: list[int]) -> None:
    stream = b"PING\r\n\nMSG a 1\nrest"
    splitter, pieces, place = Splitter(lines), [], 0
    for step in (*cuts, len(stream)):
        pieces += splitter.feed(stream[place : place + step]) if stream[place : place + step] else ()
        place += step
    assert [(Part.HEAD, each) for each in (b"PING\r\n", b"\n", b"MSG a 1\n")] == pieces
    assert [(Part.OPAQUE, b"rest")] == splitter.surrender()


def test_splitter_gives_all_as_it_comes_when_there_is_nothing_to_split_by() -> None:
    splitter = Splitter(None)
    assert [(Part.OPAQUE, b"any"), (Part.OPAQUE, b"thing")] == [*splitter.feed(b"any"), *splitter.feed(b"thing")]
    assert ("", []) == (splitter.why, splitter.surrender())


def test_splitter_stops_at_once_when_its_reader_gives_up() -> None:
    splitter = Splitter(frame_size)
    pieces = splitter.feed(frame(b"a") + frame(b"b") + frame(b"c"))
    assert (Part.HEAD, frame(b"a")) == next(pieces)
    splitter.opaque = True
    assert [(Part.OPAQUE, frame(b"b") + frame(b"c"))] == [*pieces]
