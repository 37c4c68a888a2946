"""The walk over record batches finds every sound batch, and reports disorder and where and why it stops."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.kafka_family.logs.batch import HEADER, walk
from tests.kafka_release import DATA
from tests.targets.kafka_family.logs.build import TIME_MS, batch

THREE = (batch(0, "a", "b"), batch(2, "c", epoch=1), batch(3, "d", "e", epoch=4))
LOG = b"".join(THREE)
BOUNDS = (0, len(THREE[0]), len(THREE[0]) + len(THREE[1]), len(LOG))


def test_walk_gives_every_header_field_when_the_log_is_sound() -> None:
    found = walk(LOG)
    assert [(0, 1, 0), (2, 2, 1), (3, 4, 4)] == [
        (h.base_offset, h.last_offset, h.leader_epoch) for h in found.headers
    ]
    first = found.headers[0]
    assert (TIME_MS, TIME_MS + 7, 2, 2) == (
        first.base_timestamp,
        first.max_timestamp,
        first.magic,
        first.record_count,
    )
    assert list(BOUNDS[:3]) == [h.position for h in found.headers]
    assert (len(LOG), "") == (found.sound_bytes, found.stopped)


@pytest.mark.parametrize("name", ["plain", "zstd", "transactions"])
def test_walk_gives_the_batches_before_the_cut_when_a_kafka_log_is_cut_at_every_byte(name: str) -> None:
    path = DATA / "kafka-3.9.1" / "b1" / f"{name}-0" / f"{0:020d}.log"
    data = path.read_bytes()
    whole = walk(data)
    ends = [h.position + h.size for h in whole.headers]
    assert "" == whole.stopped
    for cut in range(len(data)):
        found = walk(data[:cut])
        assert [end for end in ends if end <= cut] == [h.position + h.size for h in found.headers], cut
        assert (cut in {0, *ends}) == (found.stopped == ""), cut


def test_walk_stops_at_a_batch_when_a_byte_under_its_checksum_is_changed() -> None:
    for at in range(BOUNDS[1] + 21, BOUNDS[2]):
        changed = bytearray(LOG)
        changed[at] ^= 0x10
        found = walk(bytes(changed))
        assert (1, BOUNDS[1]) == (len(found.headers), found.sound_bytes), at
        assert "CRC-32C" in found.stopped, at


def test_walk_goes_on_when_the_epoch_is_changed_since_no_checksum_covers_it() -> None:
    changed = bytearray(LOG)
    changed[BOUNDS[1] + 12 : BOUNDS[1] + 16] = struct.pack(">i", 9)
    assert [0, 9, 4] == [h.leader_epoch for h in walk(bytes(changed)).headers]


@pytest.mark.parametrize("zeros", [1, 11, 12, 60, 61, 4096])
def test_walk_names_a_zero_filled_tail_when_only_zeros_follow(zeros: int) -> None:
    found = walk(LOG + bytes(zeros))
    assert (3, len(LOG)) == (len(found.headers), found.sound_bytes)
    assert f"{zeros} bytes, all zero" in found.stopped


def test_walk_stops_at_a_hole_of_zeros_when_batches_lie_behind_it() -> None:
    found = walk(THREE[0] + bytes(4096) + THREE[1])
    assert 1 == len(found.headers)
    assert "batch length is 0" in found.stopped


@pytest.mark.parametrize(
    ("at", "form", "value", "stopped"),
    [
        (8, ">i", 48, "batch length is 48; expected at least 49"),
        (8, ">i", -1, "batch length is -1"),
        (8, ">i", 1 << 20, "torn, batch length is 1048576"),
        (16, ">b", 0, "a message of format v0"),
        (16, ">b", 1, "a message of format v1"),
        (16, ">b", 3, "magic is 3; expected 2"),
        (17, ">I", 1, "CRC-32C is 0x00000001"),
    ],
)
def test_walk_says_why_when_a_header_cannot_be_one(at: int, form: str, value: int, stopped: str) -> None:
    changed = bytearray(LOG)
    struct.pack_into(form, changed, BOUNDS[1] + at, value)
    found = walk(bytes(changed))
    assert (1, BOUNDS[1]) == (len(found.headers), found.sound_bytes)
    assert found.stopped.startswith(f"position {BOUNDS[1]}: ")
    assert stopped in found.stopped


def test_walk_names_the_old_format_when_its_message_is_shorter_than_a_header() -> None:
    message = struct.pack(">qiIbbii", 0, 22, 0, 1, 0, -1, -1) + bytes(8)
    assert HEADER.size > len(message)
    assert "a message of format v1" in walk(message).stopped


@pytest.mark.parametrize("base", [0, 1, 2])
def test_walk_reports_the_batch_and_goes_on_when_its_base_does_not_rise(base: int) -> None:
    found = walk(batch(0, "a", "b", "c") + batch(base, "x") + batch(3, "d"))
    assert ["", f"base offset is {base}; expected 3 or later, the end of the batch before it", ""] == [
        h.problem for h in found.headers
    ]
    assert "" == found.stopped


def test_walk_reports_every_batch_below_the_furthest_when_the_log_goes_back() -> None:
    found = walk(batch(10, "a") + batch(4, "b") + batch(5, "c") + batch(11, "d"))
    assert [False, True, True, False] == [bool(h.problem) for h in found.headers]


def test_walk_reports_the_batch_when_its_last_offset_lies_before_its_base() -> None:
    (header,) = walk(batch(5, last_delta=-2)).headers
    assert "last offset delta is -2; expected 0 or more" == header.problem


def test_walk_reports_the_first_batch_when_it_begins_before_its_segment() -> None:
    assert [True] == [bool(h.problem) for h in walk(batch(5, "a"), next_offset=6).headers]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (0, (False, False, False)),
        (0x08, (True, False, False)),
        (0x10, (False, True, False)),
        (0x30, (False, True, True)),
    ],
)
def test_header_tells_time_type_transaction_and_control_when_its_bits_are_set(
    attributes: int, expected: tuple[bool, ...]
) -> None:
    (header,) = walk(batch(0, "a", attributes=attributes)).headers
    assert expected == (header.log_append_time, header.transactional, header.control)


@given(st.binary(max_size=300), st.integers(0, 2))
def test_walk_raises_nothing_whatever_the_bytes_are(tail: bytes, whole: int) -> None:
    found = walk(b"".join(THREE[:whole]) + tail)
    assert whole <= len(found.headers)
