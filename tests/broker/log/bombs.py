"""Batches of less than a megabyte that open to gigabytes, by codec."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

# Made of the same piece again and again, since it is how much that counts: no records are in there.
_GZIP_MEMBER: Final = gzip.compress(bytes(10_000_000), 9)


def _batch(codec: int, records: bytes) -> bytes:
    """Build a batch that says that it has one record; nothing here imports the broker's code."""
    covered = struct.pack(">hiqqqhii", codec, 0, 0, 0, -1, -1, -1, 1) + records
    return struct.pack(">qiibI", 0, len(covered) + 9, -1, 2, crc32c(covered)) + covered


def _zstd() -> bytes:
    """Build a frame of blocks of 4 bytes, each of which stands for 128 KiB of zeros: 32 GB."""
    block = (131_072 << 3 | 1 << 1).to_bytes(3, "little") + bytes(1)
    # The magic, no flags, a window of 128 MiB.
    return _batch(4, b"\x28\xb5\x2f\xfd\x00\x88" + block * 250_000)


def _gzip() -> bytes:
    """Build 100 members of 10 MB each: 1 GB."""
    return _batch(1, _GZIP_MEMBER * 100)


def _lz4() -> bytes:
    """Build a frame of blocks of 4 MiB of zeros, in 16 KB each: 250 MB."""
    # One literal, then a match that goes on: 255 bytes for each further byte of its length.
    block = b"\x1f\x00\x01\x00" + b"\xff" * 16_000 + b"\x00" + b"\x50" + bytes(5)
    # The magic, version and independent blocks, 4 MiB for a block, the header's checksum.
    return _batch(3, b"\x04\x22\x4d\x18\x60\x70\x73" + (struct.pack("<I", len(block)) + block) * 60)


BOMBS: Final[dict[int, Callable[[], bytes]]] = {1: _gzip, 3: _lz4, 4: _zstd}
