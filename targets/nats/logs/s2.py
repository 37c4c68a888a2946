"""
Decode S2, an extension of Snappy: a block, and a stream of blocks; never more than the caller allows.

    block    length when decoded (varint), then elements: a literal, or a copy from what was decoded so far
    stream   chunks: type 1, length 3, body. A type is 0xff (the stream begins), 0 (CRC-32C 4, a block), 1 (CRC-32C
             4, bytes as they are), 0x80 and up (skipped), or none that may be there

What S2 adds to Snappy: a copy by one byte of offset 0 takes the offset of the copy before it, and may be long. A
length is a claim: what is decoded grows with the bytes that were read, and no memory is reserved for it.

Source:  klauspost/compress 1.20.4, s2/s2.go, decode_other.go, reader.go; Snappy's framing_format.txt.
"""

from __future__ import annotations

import struct
from typing import Final

import crc32c

# The most that a chunk of a stream may open to.
CHUNK_OPENED_BYTES_MAX: Final = 4 << 20

LITERAL, _COPY1, _COPY2 = range(3)
_BEGIN: Final = b"\xff\x06\x00\x00S2sTwO"
_HEAD_BYTES: Final = 4
_CRC_BYTES: Final = 4
_CRC_ADDED: Final = 0xA282EAD8
_COMPRESSED, _PLAIN, _SKIPPED_FROM, _BEGINS = 0x00, 0x01, 0x80, 0xFF
# A length of 60 or more says how many bytes follow that have it.
_LITERAL_SHORT: Final = 60
# How many bytes have the length of a repeated copy, and what is added to it, by the length that says so.
_REPEATS: Final = {5: (1, 4), 6: (2, 1 << 8), 7: (3, 1 << 16)}


class S2Error(ValueError):
    """
    The bytes are no S2, or open to more than is allowed; the text says at which byte.

    Attributes:
        opened: What was decoded before; of a stream its whole chunks.
    """

    def __init__(self, text: str, opened: bytes = b"") -> None:
        super().__init__(text)
        self.opened = opened


def opened_block(data: bytes, limit: int) -> bytes:
    """
    Return what a block decodes to.

    Raises:
        S2Error: It is damaged, or decodes to more than `limit` bytes.
    """
    length, at = varint(data, 0)
    if length > limit:
        raise S2Error(f"byte 0: S2 block of {length} bytes when decoded; this reader takes at most {limit}")
    out = bytearray()
    offset, size = 0, len(data)
    while at < size:
        tag = data[at]
        begin = at
        if tag & 3 == LITERAL:
            count, at = literal(data, at)
            # A literal cannot be longer than the bytes left, so nothing is reserved for a claim.
            if count > size - at or count > length - len(out):
                raise S2Error(f"byte {begin}: literal of {count} bytes; expected at most {size - at}")
            out += data[at : at + count]
            at += count
            continue
        offset, count, at = copied(data, at, offset)
        if not 0 < offset <= len(out) or count > length - len(out):
            left = length - len(out)
            text = f"copy of {count} bytes from {offset} back; expected at most {left} from {len(out)}"
            raise S2Error(f"byte {begin}: {text}")
        first = len(out) - offset
        if count <= offset:
            out += out[first : first + count]
        else:
            piece = bytes(out[first:])
            out += (piece * (count // offset + 1))[:count]
    if len(out) != length:
        raise S2Error(f"byte {size}: {len(out)} bytes are decoded; expected {length}")
    return bytes(out)


def opened_stream(data: bytes, limit: int) -> bytes:
    """
    Return what a stream decodes to.

    Raises:
        S2Error: It is damaged, or decodes to more than `limit` bytes.
    """
    out = bytearray()
    if not data.startswith(_BEGIN):
        raise S2Error(f"byte 0: {data[: len(_BEGIN)].hex()}; expected {_BEGIN.hex()}, which begins an S2 stream")
    at = 0
    while at < len(data):
        head = data[at : at + _HEAD_BYTES]
        size = int.from_bytes(head[1:], "little")
        left = len(data) - at - _HEAD_BYTES
        if size > left:
            text = f"byte {at}: chunk of {size} bytes, and {max(left, 0)} are left"
            raise S2Error(text, bytes(out))
        body = data[at + _HEAD_BYTES : at + _HEAD_BYTES + size]
        try:
            out += _chunk(head[0], body, min(limit - len(out), CHUNK_OPENED_BYTES_MAX))
        except S2Error as error:
            raise S2Error(f"chunk at byte {at}: {error}", bytes(out)) from None
        at += _HEAD_BYTES + size
    return bytes(out)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """
    Return an unsigned number in groups of seven bits, the lowest first, and where it ends.

    Raises:
        S2Error: It does not end, or has more than 64 bits.
    """
    number = 0
    for count, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80 and number < 1 << 64:
            return number, at + count + 1
    raise S2Error(f"byte {at}: {data[at : at + 10].hex()} is no number; expected one of at most 10 bytes")


def literal(data: bytes, at: int) -> tuple[int, int]:
    """
    Return the length of the literal that begins here, and where its bytes begin.

    Raises:
        S2Error: The bytes that have its length are not all there.
    """
    count = data[at] >> 2
    if count < _LITERAL_SHORT:
        return count + 1, at + 1
    more = count - _LITERAL_SHORT + 1
    return _number(data, at + 1, more) + 1, at + 1 + more


def copied(data: bytes, at: int, offset: int) -> tuple[int, int, int]:
    """
    Return a copy's offset and length, and where the next element begins.

    Args:
        offset: That of the copy before it, which it may take again.

    Raises:
        S2Error: The bytes that have them are not all there.
    """
    tag = data[at]
    kind, count = tag & 3, tag >> 2
    if kind != _COPY1:
        more = 2 if kind == _COPY2 else 4
        return _number(data, at + 1, more), count + 1, at + 1 + more
    count &= 7
    found = (tag & 0xE0) << 3 | _number(data, at + 1, 1)
    at += 2
    if found:
        return found, count + 4, at
    more, added = _REPEATS.get(count, (0, 0))
    if more:
        count = _number(data, at, more) + added
    return offset, count + 4, at + more


def _number(data: bytes, at: int, count: int) -> int:
    if at + count > len(data):
        raise S2Error(f"byte {at}: {len(data) - at} bytes are left; expected {count}")
    return int.from_bytes(data[at : at + count], "little")


def _chunk(kind: int, body: bytes, limit: int) -> bytes:
    """Return what a chunk decodes to; nothing if it has no data."""
    if kind == _BEGINS:
        if body != _BEGIN[_HEAD_BYTES:]:
            raise S2Error(f"stream begins with {body[:6]!r}; expected {_BEGIN[_HEAD_BYTES:]!r}")
        return b""
    if kind >= _SKIPPED_FROM:
        return b""
    if kind > _PLAIN:
        raise S2Error(f"chunk of type {kind:#04x}; expected 0x00, 0x01, or 0x80 and above")
    if len(body) < _CRC_BYTES:
        raise S2Error(f"chunk of {len(body)} bytes; expected at least {_CRC_BYTES}")
    if kind == _PLAIN and len(body) - _CRC_BYTES > limit:
        raise S2Error(f"{len(body) - _CRC_BYTES} bytes; this reader takes at most {limit}")
    data = body[_CRC_BYTES:] if kind == _PLAIN else opened_block(body[_CRC_BYTES:], limit)
    (stored,) = struct.unpack_from("<I", body)
    crc = crc32c.crc32c(data)
    masked = ((crc >> 15 | crc << 17) + _CRC_ADDED) & 0xFFFFFFFF
    if masked != stored:
        raise S2Error(f"CRC-32C is {stored:#010x}, its bytes have {masked:#010x}")
    return data
