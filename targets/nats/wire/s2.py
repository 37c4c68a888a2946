"""
The beginning of a block of S2, decompressed as far as asked; what follows is not looked at.

    block    length (uvarint), then elements; the two lowest bits of an element's first byte are its kind
    00       literal: length - 1 in the other bits; 60 to 63: in the 1 to 4 bytes that follow
    01       copy, offset in 11 bits: length - 4 in 3 bits; offset 0 repeats the offset of before
    10, 11   copy, offset in 2 or 4 bytes: length - 1 in 6 bits

Source:  README of github.com/klauspost/compress/s2, and its decode_other.go.
"""

from __future__ import annotations

from typing import Final

from targets.nats.wire.frames import Malformed

_LITERAL, _COPY_1, _COPY_2 = 0, 1, 2
_LONG_LITERAL: Final = 60
# Offset 0 of a short copy: its length, when the 3 bits hold 5 to 7, is in so many bytes more, from this base on.
_REPEATS: Final = {5: (1, 4), 6: (2, 1 << 8), 7: (3, 1 << 16)}


def beginning(block: bytes, size: int) -> bytes:
    """
    Return the first `size` bytes that a block, or what there is of it, decompresses to; fewer if it has no more.

    Raises:
        Malformed: a copy is from before the beginning.
    """
    at, out, offset = _behind_uvarint(block), bytearray(), 0
    while len(out) < size and at < len(block):
        tag, at = block[at], at + 1
        kind, rest = tag & 3, tag >> 2
        if kind == _LITERAL:
            length = rest
            if rest >= _LONG_LITERAL:
                more = rest - _LONG_LITERAL + 1
                length, at = int.from_bytes(block[at : at + more], "little"), at + more
            out += block[at : at + min(length + 1, size)]
            at += length + 1
            continue
        if kind == _COPY_1:
            length, offset, at = _short_copy(block, at, tag, offset)
        else:
            more = 2 if kind == _COPY_2 else 4
            length, offset, at = rest + 1, int.from_bytes(block[at : at + more], "little"), at + more
        if at > len(block):
            break
        _copy(out, min(length, size), offset)
    return bytes(out[:size])


def _short_copy(block: bytes, at: int, tag: int, before: int) -> tuple[int, int, int]:
    """Return length, offset and what is behind a copy of kind 01, or a repeat."""
    length = tag >> 2 & 7
    offset = (tag >> 5) << 8 | (block[at] if at < len(block) else 0)
    at += 1
    if offset:
        return length + 4, offset, at
    if length in _REPEATS:
        more, base = _REPEATS[length]
        return int.from_bytes(block[at : at + more], "little") + base + 4, before, at + more
    return length + 4, before, at


def _copy(out: bytearray, length: int, offset: int) -> None:
    if not 0 < offset <= len(out):
        raise Malformed(f"S2: a copy from {offset} bytes before, where {len(out)} are; expected one from within")
    for _ in range(length):
        out.append(out[-offset])


def _behind_uvarint(data: bytes) -> int:
    return next((at + 1 for at, byte in enumerate(data[:10]) if byte < 0x80), len(data))
