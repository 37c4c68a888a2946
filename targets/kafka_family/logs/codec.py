"""
Decompress a batch's records: one table, codec id -> (name, decompress).

Snappy has two framings: Kafka's Java code writes xerial's (a magic, then blocks with their lengths), librdkafka
writes one raw block. lz4, zstd and gzip use their standard formats. In message format v0, Kafka computed the
header checksum of lz4 frames wrongly.

No batch opens to more than LOG_BATCH_OPENED_BYTES_MAX: the output goes to memory of that size, which the kernel
provides only where it is written.

Source:  KIP-57 (the checksum); xxHash's specification (XXH32).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from typing import Final

import cramjam

from harness import limits

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
# The magic, then two 4-byte versions that no reader needs.
_XERIAL_HEADER_BYTES: Final = 16

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
# Flags that make the header longer.
_LZ4_SIZE: Final = 0x08
_LZ4_DICTIONARY: Final = 0x01
# What cramjam says when the output does not fit.
_FULL: Final = "failed to write whole buffer"
_PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)


class CodecError(ValueError):
    """The bytes do not decompress with their codec, or the codec is unknown; the text says which."""


def codec_name(codec_id: int) -> str:
    """Return the codec's name; `codec-<id>` if Kafka does not know the id."""
    return _CODECS[codec_id][0] if codec_id in _CODECS else f"codec-{codec_id}"


def decompress(codec_id: int, payload: bytes) -> bytes:
    """
    Return the records' bytes uncompressed.

    Raises:
        CodecError: The codec is unknown, or the bytes do not decompress.
    """
    if codec_id not in _CODECS:
        known = ", ".join(name for name, _ in _CODECS.values())
        raise CodecError(f"compression codec is {codec_id}; expected one of {known}")
    name, function = _CODECS[codec_id]
    try:
        return function(payload)
    except (cramjam.DecompressionError, struct.error, OverflowError, MemoryError) as error:
        raise CodecError(f"{name}: {len(payload)} bytes do not decompress: {error}") from error


def fix_lz4_checksum(payload: bytes) -> bytes:
    """
    Replace an lz4 frame's header checksum by the one that the lz4 format requires; return other bytes unchanged.

    Kafka's message format v0 computed the checksum from the magic on. All lz4 libraries except Kafka's own reject
    such a frame.
    """
    if not payload.startswith(_LZ4_MAGIC) or len(payload) <= len(_LZ4_MAGIC):
        return payload
    flags = payload[len(_LZ4_MAGIC)]
    at = len(_LZ4_MAGIC) + 2 + 8 * bool(flags & _LZ4_SIZE) + 4 * bool(flags & _LZ4_DICTIONARY)
    checksum = _xxh32(payload[len(_LZ4_MAGIC) : at]) >> 8 & 0xFF
    return payload[:at] + bytes((checksum,)) + payload[at + 1 :]


def _xxh32(data: bytes) -> int:
    """Return XXH32 of fewer than 16 bytes, with seed 0."""
    assert len(data) < 16, f"{len(data)} bytes; an lz4 header has at most 14"
    found = _PRIMES[4] + len(data)
    whole = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        found = _rotated(found + word * _PRIMES[2], 17) * _PRIMES[3]
    for byte in data[whole:]:
        found = _rotated(found + byte * _PRIMES[4], 11) * _PRIMES[0]
    for shift, prime in ((15, _PRIMES[1]), (13, _PRIMES[2])):
        found &= 0xFFFFFFFF
        found = (found ^ found >> shift) * prime
    found &= 0xFFFFFFFF
    return found ^ found >> 16


def _rotated(number: int, bits: int) -> int:
    number &= 0xFFFFFFFF
    return (number << bits | number >> (32 - bits)) & 0xFFFFFFFF


def _snappy(payload: bytes) -> bytes:
    if not payload.startswith(XERIAL_MAGIC):
        return _block(payload, 0)
    blocks: list[bytes] = []
    position = _XERIAL_HEADER_BYTES
    opened_bytes = 0
    while position < len(payload):
        (size,) = struct.unpack_from(">i", payload, position)
        position += 4
        if size < 0 or position + size > len(payload):
            left = len(payload) - position
            raise CodecError(f"snappy: a block's length is {size}; expected 0 to {left}, the bytes left")
        blocks.append(_block(payload[position : position + size], opened_bytes))
        opened_bytes += len(blocks[-1])
        position += size
    return b"".join(blocks)


def _block(block: bytes, opened_bytes: int) -> bytes:
    """Decompress one block of snappy, which begins with its length; opened_bytes were opened before it."""
    length = cramjam.snappy.decompress_raw_len(block) if block else 0
    if opened_bytes + length > limits.LOG_BATCH_OPENED_BYTES_MAX:
        raise _too_large("snappy", len(block))
    return bytes(cramjam.snappy.decompress_raw(block))


def _streamed(name: str, into: Callable[[bytes, mmap.mmap], int]) -> Callable[[bytes], bytes]:
    """Return the function that decompresses a codec whose data does not say how long it will be."""

    def opened(payload: bytes) -> bytes:
        with mmap.mmap(-1, limits.LOG_BATCH_OPENED_BYTES_MAX) as room:
            try:
                length = into(payload, room)
            except cramjam.DecompressionError as error:
                if _FULL in str(error):
                    raise _too_large(name, len(payload)) from error
                raise
            return room[:length]

    return opened


def _too_large(name: str, size: int) -> CodecError:
    limit = limits.LOG_BATCH_OPENED_BYTES_MAX
    return CodecError(f"{name}: {size} bytes open to more than {limit} bytes, which is the limit of this reader")


_CODECS: Final[dict[int, tuple[str, Callable[[bytes], bytes]]]] = {
    0: ("none", bytes),
    1: ("gzip", _streamed("gzip", cramjam.gzip.decompress_into)),
    2: ("snappy", _snappy),
    3: ("lz4", _streamed("lz4", cramjam.lz4.decompress_into)),
    4: ("zstd", _streamed("zstd", cramjam.zstd.decompress_into)),
}
