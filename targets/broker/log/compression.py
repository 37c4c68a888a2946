"""
Open a batch's compressed records, within a limit: nothing in the bytes decides how much memory is taken.

Records are opened into an area of the limit's size, which the kernel fills with pages only where it is written: a
codec that has more to write fails there. What the codecs take besides is bounded by their formats: the greatest
is zstd's window, which its library refuses above 128 MiB and of which no more is touched than was opened.
Snappy has two framings: Kafka's Java code writes xerial's (a magic, then blocks with their lengths), librdkafka
writes one raw block.
Source:  Kafka, CompressionType; KIP-110 (zstd).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from typing import Any, Final

import cramjam

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
# The magic, then two 4-byte versions that no reader needs.
_XERIAL_HEADER_BYTES: Final = 16
_BLOCK_LENGTH: Final = struct.Struct(">i")
# What the library says when the area is full; Rust's own words for a writer that takes no more.
_FULL: Final = "failed to write whole buffer"


class CodecError(ValueError):
    """The bytes do not decompress with their codec; the text says which."""


class TooLargeError(Exception):
    """The bytes open to more than the limit."""


def open_records(codec: int, data: memoryview, bytes_max: int) -> memoryview:
    """
    Return the records' bytes uncompressed, at most bytes_max.

    Args:
        codec: Kafka's number of it: 1 gzip, 2 snappy, 3 lz4, 4 zstd.

    Raises:
        TooLargeError: there are more.
        CodecError: the bytes do not decompress.
    """
    name, decompress_into = _CODECS[codec]
    # Freed with the last view of it; closing it here would fail while one is left.
    area = memoryview(mmap.mmap(-1, max(1, bytes_max)))[:bytes_max]
    try:
        return area[: decompress_into(data, area)]
    except cramjam.DecompressionError as error:
        if _FULL in str(error):
            raise TooLargeError from None
        raise CodecError(f"{name}: {len(data)} bytes do not decompress: {error}") from None


def pack_records(codec: int, data: bytes) -> bytes:
    """Return the records' bytes compressed, as open_records opens them; of snappy one raw block."""
    return bytes(_PACKERS[codec](data))


def _pack_lz4(data: bytes) -> bytes:
    # Kafka reads no frame whose blocks depend on each other ("Dependent block stream is unsupported").
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _gzip(data: memoryview, area: memoryview) -> int:
    return int(cramjam.gzip.decompress_into(data, area))


def _snappy(data: memoryview, area: memoryview) -> int:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(data, area)
    at, end = _XERIAL_HEADER_BYTES, 0
    while at < len(data):
        if at + _BLOCK_LENGTH.size > len(data):
            raise CodecError(f"snappy: {len(data) - at} bytes after the last block; expected none")
        (size,) = _BLOCK_LENGTH.unpack_from(data, at)
        at += _BLOCK_LENGTH.size
        if not 0 <= size <= len(data) - at:
            raise CodecError(f"snappy: a block of {size} bytes; expected 0 to {len(data) - at}, the bytes left")
        end += _snappy_block(data[at : at + size], area[end:])
        at += size
    return end


def _snappy_block(data: memoryview, area: memoryview) -> int:
    # The length stands before the block, and the library opens no block to more or less than that.
    if cramjam.snappy.decompress_raw_len(data) > len(area):
        raise TooLargeError
    return int(cramjam.snappy.decompress_raw_into(data, area))


def _lz4(data: memoryview, area: memoryview) -> int:
    return int(cramjam.lz4.decompress_into(data, area))


def _zstd(data: memoryview, area: memoryview) -> int:
    return int(cramjam.zstd.decompress_into(data, area))


_CODECS: Final[dict[int, tuple[str, Callable[[memoryview, memoryview], int]]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
_PACKERS: Final[dict[int, Callable[[bytes], Any]]] = {
    1: cramjam.gzip.compress,
    2: cramjam.snappy.compress_raw,
    3: _pack_lz4,
    4: cramjam.zstd.compress,
}
