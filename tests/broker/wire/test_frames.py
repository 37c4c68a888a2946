from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.broker.wire import FrameSplitter, WireError, correlation_of
from targets.broker.wire.frames import EAGER_BYTES, SMALL_BYTES
from tests.broker.log.batches import drawn


def fed(splitter: FrameSplitter, data: bytes) -> list[bytes]:
    """Feed bytes as a socket does, as many at a time as the splitter has room for; return the frames."""
    found: list[bytes] = []
    while data:
        room = splitter.room()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        found += map(bytes, splitter.came(count))
        if splitter.wanted:
            splitter.grow()
    return found


@drawn
@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(min_value=1, max_value=50))
def test_frames_come_whole_and_in_order_however_the_bytes_arrive(bodies: list[bytes], step: int) -> None:
    stream = b"".join(len(body).to_bytes(4) + body for body in bodies)
    splitter = FrameSplitter()
    found = [frame for at in range(0, len(stream), step) for frame in fed(splitter, stream[at : at + step])]
    assert bodies == found


LENGTHS = (0, 1, SMALL_BYTES - 5, SMALL_BYTES - 4, SMALL_BYTES - 3, EAGER_BYTES, EAGER_BYTES + 1, 5 * EAGER_BYTES)


@pytest.mark.parametrize("step", [SMALL_BYTES // 3, 10 * EAGER_BYTES])
def test_large_frames_come_whole_between_small_ones(step: int) -> None:
    bodies = [bytes([number]) * length for number, length in enumerate(LENGTHS + LENGTHS[::-1])]
    stream = b"".join(len(body).to_bytes(4) + body for body in bodies)
    splitter = FrameSplitter()
    assert bodies == [
        frame for at in range(0, len(stream), step) for frame in fed(splitter, stream[at : at + step])
    ]


def test_large_frame_is_given_where_it_was_received() -> None:
    splitter = FrameSplitter()
    assert [] == fed(splitter, EAGER_BYTES.to_bytes(4) + b"x")
    room = splitter.room()
    assert EAGER_BYTES - 1 == len(room)
    (frame,) = splitter.came(len(room))
    assert isinstance(frame, memoryview) and frame.readonly
    room[-1:] = b"y"
    assert (b"x", b"y") == (bytes(frame[:1]), bytes(frame[-1:]))


def test_room_grows_with_what_comes_and_not_with_what_is_promised() -> None:
    splitter = FrameSplitter()
    fed(splitter, (50 * EAGER_BYTES).to_bytes(4))
    for times in (1, 1, 2, 4):
        assert times * EAGER_BYTES == len(splitter.room())
        assert [] == splitter.came(len(splitter.room()))
        assert 2 * splitter.held == splitter.wanted
        splitter.grow()


def test_connections_share_the_room_for_small_frames_and_keep_what_is_not_whole_yet() -> None:
    one, other = FrameSplitter(), FrameSplitter()
    whole = (6).to_bytes(4) + b"abcdef"
    assert [] == fed(one, whole[:7])
    one.room()[:3] = b"xyz"  # a receive that came to nothing
    assert [b"abcdef"] == fed(other, whole)
    assert [b"abcdef"] == fed(one, whole[7:])
    assert 0 == one.held == one.wanted


def test_large_frame_waits_for_its_buffer_with_what_came() -> None:
    splitter = FrameSplitter()
    room = splitter.room()
    room[:6] = SMALL_BYTES.to_bytes(4) + b"xy"
    assert [] == splitter.came(6)
    assert (0, SMALL_BYTES) == (splitter.held, splitter.wanted)
    splitter.grow()
    assert (SMALL_BYTES, 0) == (splitter.held, splitter.wanted)
    assert SMALL_BYTES - 2 == len(splitter.room())


@pytest.mark.parametrize("length", [-1, 11, 2**31 - 1, -(2**31)])
def test_length_that_no_frame_has_is_a_wire_error(length: int) -> None:
    with pytest.raises(WireError, match=f"frame of {length} bytes; expected 0 to 10"):
        fed(FrameSplitter(10), length.to_bytes(4, signed=True))


def test_correlation_id_is_read_from_the_header() -> None:
    assert -2 == correlation_of(b"\xff\xff\xff\xfe...")
    with pytest.raises(WireError, match="response of 3 bytes"):
        correlation_of(b"\x00\x00\x00")
