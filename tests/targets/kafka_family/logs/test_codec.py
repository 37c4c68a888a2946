"""Each codec decompresses its own data, and raises CodecError for other bytes."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.workload.plan import CODEC_NAMES
from targets.kafka_family.logs.codec import CodecError, _xxh32, codec_name, decompress, fix_lz4_checksum
from tests.targets.kafka_family.logs.build import CODECS, compress, xerial

DATA = b"the same again and again and again and again, and something else" * 3


@pytest.mark.parametrize("codec", CODECS)
def test_decompress_gives_the_bytes_back_for_every_codec(codec: str) -> None:
    assert DATA == decompress(CODECS[codec], compress(codec, DATA))
    assert codec == codec_name(CODECS[codec])


def test_decompress_joins_the_blocks_when_snappy_is_framed_as_java_frames_it() -> None:
    assert DATA == decompress(CODECS["snappy"], xerial(DATA))


def test_decompress_refuses_a_torn_xerial_frame_at_every_byte_that_is_no_block_s_end() -> None:
    framed, refused = xerial(DATA[:70]), 0
    for cut in range(17, len(framed)):
        try:
            assert DATA.startswith(decompress(CODECS["snappy"], framed[:cut])), cut
        except CodecError:
            refused += 1
    # There are three blocks, and the frame may end after the first or the second.
    assert len(framed) - 17 - 2 == refused


@pytest.mark.parametrize("size", [-4, 1 << 30])
def test_decompress_refuses_a_xerial_block_when_its_length_cannot_be(size: int) -> None:
    framed = xerial(b"")[:16] + struct.pack(">i", size) + b"rest"
    with pytest.raises(CodecError, match=f"a block's length is {size}; expected 0 to 4"):
        decompress(CODECS["snappy"], framed)


def test_decompress_refuses_a_codec_that_kafka_does_not_have() -> None:
    with pytest.raises(CodecError, match="compression codec is 5; expected one of none, gzip"):
        decompress(5, DATA)
    assert "codec-5" == codec_name(5)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_decompress_names_the_codec_when_the_bytes_are_not_its_own(codec: str) -> None:
    with pytest.raises(CodecError, match=codec):
        decompress(CODECS[codec], b"\xff" * 40)


@given(st.integers(0, 7), st.binary(max_size=64))
def test_decompress_raises_codec_errors_alone_whatever_the_bytes_are(codec_id: int, data: bytes) -> None:
    with suppress(CodecError):
        assert isinstance(decompress(codec_id, data), bytes)


@pytest.mark.parametrize("size", [0, 1, 100, 70_000, 300_000])
def test_lz4_header_is_mended_to_what_it_was(size: int) -> None:
    """Source: KIP-57: Kafka's v0 has another byte there, which no lz4 library accepts."""
    data = bytes(range(256)) * (size // 256 + 1)
    frame = compress("lz4", data[:size])
    assert frame == fix_lz4_checksum(frame)
    place = next(at for at in range(6, 15) if not _opens(frame[:at] + bytes((frame[at] ^ 1,)) + frame[at + 1 :]))
    broken = frame[:place] + bytes((frame[place] ^ 1,)) + frame[place + 1 :]
    assert data[:size] == decompress(CODECS["lz4"], fix_lz4_checksum(broken))


def _opens(frame: bytes) -> bool:
    try:
        decompress(CODECS["lz4"], frame)
    except CodecError as error:
        return "headerChecksum" not in str(error)
    return True


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"no frame at all"])
def test_lz4_bytes_that_begin_no_frame_stay_as_they_are(data: bytes) -> None:
    assert data == fix_lz4_checksum(data)


@pytest.mark.parametrize(("data", "digest"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)])
def test_xxh32_gives_its_known_values(data: bytes, digest: int) -> None:
    assert digest == _xxh32(data)


def test_codecs_have_the_names_that_plans_and_scenarios_use() -> None:
    assert CODEC_NAMES == tuple(map(codec_name, range(len(CODEC_NAMES))))
    assert "codec-5" == codec_name(len(CODEC_NAMES))
