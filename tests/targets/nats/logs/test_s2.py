"""S2 is decoded, with what it adds to Snappy; damage and bombs are refused with their place."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from contextlib import suppress

import cramjam
import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.nats.logs.s2 import S2Error, opened_block, opened_stream, varint

LIMIT = 1 << 20
BEGIN = b"\xff\x06\x00\x00S2sTwO"


def chunk(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + len(body).to_bytes(3, "little") + body


def crc(data: bytes) -> bytes:
    found = crc32c.crc32c(data)
    return struct.pack("<I", ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def squeezed(data: bytes) -> bytes:
    """Return a chunk that Snappy compressed, whose blocks S2 can read too."""
    return chunk(0, crc(data) + bytes(cramjam.snappy.compress_raw(data)))


@given(st.binary(max_size=300), st.integers(1, 400))
def test_block_of_snappy_is_a_block_of_s2(data: bytes, times: int) -> None:
    assert data * times == opened_block(bytes(cramjam.snappy.compress_raw(data * times)), LIMIT)


@pytest.mark.parametrize(
    ("repeat", "length"),
    [
        (b"\x01\x00", 4),
        (b"\x11\x00", 8),
        (b"\x15\x00\x05", 4 + 4 + 5),
        (b"\x19\x00\x05\x01", 4 + 0x100 + 0x105),
        (b"\x1d\x00\x05\x00\x00", 4 + 0x10000 + 5),
    ],
)
def test_copy_of_offset_0_takes_the_offset_before(repeat: bytes, length: int) -> None:
    whole = 3 + 4 + length
    size = bytes((whole & 0x7F | 0x80, whole >> 7 & 0x7F | 0x80, whole >> 14))
    data = size + b"\x08abc" + b"\x01\x03" + repeat
    assert (b"abc" * whole)[:whole] == opened_block(data, LIMIT)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "byte 0:  is no number"),
        (b"\xff" * 10, "is no number"),
        (b"\x03\x08ab", "byte 1: literal of 3 bytes; expected at most 2"),
        (b"\x03\xf8ab", "byte 2: 2 bytes are left; expected 3"),
        (b"\x02\x08abc", "byte 1: literal of 3 bytes"),
        (b"\x09\x00a\x01\x02", "byte 3: copy of 4 bytes from 2 back"),
        (b"\x09\x00a\x01\x00", "byte 3: copy of 4 bytes from 0 back"),
        (b"\x02\x00a\x01\x01", "byte 3: copy of 4 bytes from 1 back; expected at most 1"),
        (b"\x02\x00a\x01", "byte 4: 0 bytes are left; expected 1"),
        (b"\x02\x00a", "byte 3: 1 bytes are decoded; expected 2"),
    ],
)
def test_damaged_block_is_refused_with_its_place(data: bytes, text: str) -> None:
    with pytest.raises(S2Error, match=text):
        opened_block(data, LIMIT)


def test_block_of_more_than_the_limit_is_refused_unopened() -> None:
    assert b"abc" == opened_block(b"\x03\x08abc", 3)
    with pytest.raises(S2Error, match="S2 block of 3 bytes when decoded; this reader takes at most 2"):
        opened_block(b"\x03\x08abc", 2)


def test_claimed_gigabytes_take_no_memory_and_no_time() -> None:
    data = b"\xff\xff\xff\xff\x07" + b"\x08abc"
    began = time.monotonic()
    tracemalloc.start()
    with pytest.raises(S2Error, match="3 bytes are decoded"):
        opened_block(data, 1 << 40)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert time.monotonic() - began < 5


def test_bytes_of_chance_are_decoded_or_refused() -> None:
    chance = random.Random(5)
    for _ in range(2000):
        data = chance.randbytes(chance.randrange(60))
        for read in (opened_block, opened_stream):
            with suppress(S2Error):
                assert len(read(data, LIMIT)) <= LIMIT


def test_stream_is_its_chunks_in_their_order() -> None:
    parts = [b"one " * 90, b"two", b"three " * 30]
    data = BEGIN + squeezed(parts[0]) + chunk(1, crc(parts[1]) + parts[1]) + chunk(0xFE, b"padding")
    assert b"".join(parts) == opened_stream(data + BEGIN + squeezed(parts[2]), LIMIT)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "byte 0: ; expected ff0600005332735477"),
        (b"\xff\x06\x00\x00sNaPpY", "begins an S2 stream"),
        (BEGIN + squeezed(b"abc")[:-1], "byte 10: chunk of 9 bytes, and 8 are left"),
        (BEGIN + b"\x00", "chunk of 0 bytes, and 0 are left"),
        (BEGIN + chunk(1, b"abc"), "chunk of 3 bytes; expected at least 4"),
        (BEGIN + chunk(2, b"abcd"), "chunk of type 0x02"),
        (BEGIN + chunk(1, crc(b"abc") + b"abd"), "chunk at byte 10: CRC-32C is"),
        (BEGIN + chunk(0xFF, b"S2sTwX"), "stream begins with"),
    ],
)
def test_damaged_stream_is_refused_with_its_place(data: bytes, text: str) -> None:
    with pytest.raises(S2Error, match=text):
        opened_stream(data, LIMIT)


def test_whole_chunks_before_damage_are_kept() -> None:
    with pytest.raises(S2Error) as caught:
        opened_stream(BEGIN + squeezed(b"abc") + chunk(1, crc(b"x") + b"y"), LIMIT)
    assert b"abc" == caught.value.opened


def test_limit_is_that_of_all_chunks_together() -> None:
    data = BEGIN + squeezed(b"abc") + chunk(1, crc(b"def") + b"def")
    assert b"abcdef" == opened_stream(data, 6)
    with pytest.raises(S2Error, match="this reader takes at most 2"):
        opened_stream(data, 5)


def test_number_of_64_bits_is_read_and_no_larger_one() -> None:
    assert (2**64 - 1, 10) == varint(b"\xff" * 9 + b"\x01", 0)
    with pytest.raises(S2Error, match="expected one of at most 10 bytes"):
        varint(b"\xff" * 9 + b"\x02", 0)
