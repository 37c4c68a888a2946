"""
The beginning of a block of S2, decompressed as far as asked; what follows is not looked at, and may be missing.

targets/nats/logs/s2.py says what a block is.
"""

from __future__ import annotations

from contextlib import suppress

from targets.nats.logs.s2 import LITERAL, S2Error, copied, literal
from targets.nats.wire.frames import Malformed


def beginning(block: bytes, size: int) -> bytes:
    """
    Return the first `size` bytes that a block, or what there is of it, decompresses to; fewer if it has no more.

    Raises:
        Malformed: a copy is from before the beginning.
    """
    at, out, offset = _behind_uvarint(block), bytearray(), 0
    with suppress(S2Error):  # it is cut off within an element
        while len(out) < size and at < len(block):
            if block[at] & 3 == LITERAL:
                length, at = literal(block, at)
                out += block[at : at + min(length, size)]
                at += length
            else:
                offset, length, at = copied(block, at, offset)
                _copy(out, min(length, size), offset)
    return bytes(out[:size])


def _copy(out: bytearray, length: int, offset: int) -> None:
    if not 0 < offset <= len(out):
        raise Malformed(f"S2: a copy from {offset} bytes before, where {len(out)} are; expected one from within")
    for _ in range(length):
        out.append(out[-offset])


def _behind_uvarint(data: bytes) -> int:
    return next((at + 1 for at, byte in enumerate(data[:10]) if byte < 0x80), len(data))
