"""Write message blocks and append entries for tests, with code that shares nothing with the reader."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path

TIME_NS = 1_800_000_000_000_000_000
ERASED, TOMBSTONE = 1 << 63, 1 << 62
MASK = (1 << 64) - 1


def record(
    block: str,
    sequence: int,
    body: bytes = b"",
    *,
    header: bytes = b"",
    subject: bytes = b"",
    time_ns: int | None = None,
) -> bytes:
    """Encode a record of a block, which is named as its key is: `orders-0-1`; the sequence with its flags."""
    time_ns = TIME_NS + (sequence & (TOMBSTONE - 1)) if time_ns is None else time_ns
    numbers = struct.pack("<QQ", sequence, time_ns)
    text = subject + (struct.pack("<I", len(header)) + header if header else b"") + body
    length = 22 + len(text) + 8 | (1 << 31 if header else 0)
    checksum = highway(hashlib.sha256(block.encode()).digest(), numbers + subject + header + body)
    return (
        struct.pack("<I", length) + numbers + struct.pack("<H", len(subject)) + text + struct.pack("<Q", checksum)
    )


def message(
    last: int, payload: bytes, *, header: bytes = b"", subject: bytes = b"s", time_ns: int | None = None
) -> bytes:
    """Encode a stream's record as an entry of its group has it, without the operation."""
    time_ns = TIME_NS + last + 1 if time_ns is None else time_ns
    return b"".join(
        (
            struct.pack("<QQH", last, time_ns, len(subject)) + subject,
            struct.pack("<H", 1) + b"r",
            struct.pack("<H", len(header)) + header,
            struct.pack("<I", len(payload)) + payload,
            b"\0",
        )
    )


def appended(term: int, *entries: bytes, kind: int = 0, tail: bytes = b"\0") -> bytes:
    """Encode an append entry; each entry begins with its operation."""
    body = b"".join(struct.pack("<IB", 1 + len(each), kind) + each for each in entries)
    return struct.pack("<8sQQQQH", b"LeaderId", term, 3, term, 2, len(entries)) + body + tail


def stream(data: Path, name: str, *blocks: Sequence[bytes], account: str = "$G") -> Path:
    """Write a stream's blocks, from 1 on, into a store directory; return their folder."""
    return _written(data / "jetstream" / account / "streams" / name / "msgs", blocks)


def group(data: Path, name: str, stream_name: str, *blocks: Sequence[bytes], account: str = "$G") -> Path:
    """Write the log of a stream's group into a store directory; return its folder."""
    folder = _written(data / "jetstream" / "$SYS" / "_js_" / name / "msgs", blocks)
    label = {"type": "stream", "account": account, "stream": stream_name}
    (folder.parent / "meta.inf").write_text(json.dumps({"name": name, "metadata": label}))
    return folder


def _written(folder: Path, blocks: Sequence[Sequence[bytes]]) -> Path:
    folder.mkdir(parents=True)
    for number, each in enumerate(blocks, 1):
        (folder / f"{number}.blk").write_bytes(b"".join(each))
    return folder


def highway(key: bytes, text: bytes) -> int:
    """Return HighwayHash-64 by plain numbers, as its authors' portable code has it."""
    init0 = [0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3]
    init1 = [0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377]
    k = struct.unpack("<4Q", key)
    v0, mul0, mul1 = [a ^ b for a, b in zip(init0, k, strict=True)], list(init0), list(init1)
    v1 = [a ^ _turned(b) for a, b in zip(init1, k, strict=True)]

    def update(packet: Sequence[int]) -> None:
        for i in range(4):
            v1[i] = (v1[i] + mul0[i] + packet[i]) & MASK
            mul0[i] ^= ((v1[i] & 0xFFFFFFFF) * (v0[i] >> 32)) & MASK
            v0[i] = (v0[i] + mul1[i]) & MASK
            mul1[i] ^= ((v0[i] & 0xFFFFFFFF) * (v1[i] >> 32)) & MASK
        for to, of in ((v0, v1), (v1, v0)):
            for i in (0, 2):
                low, high = _zipped(of[i], of[i + 1])
                to[i], to[i + 1] = (to[i] + low) & MASK, (to[i + 1] + high) & MASK

    whole = len(text) // 32 * 32
    for at in range(0, whole, 32):
        update(struct.unpack_from("<4Q", text, at))
    if rest := text[whole:]:
        size = len(rest)
        for i in range(4):
            v0[i] = (v0[i] + (size << 32) + size) & MASK
            halves = [_rotated(v1[i] >> 32, size), _rotated(v1[i] & 0xFFFFFFFF, size)]
            v1[i] = halves[0] << 32 | halves[1]
        update(struct.unpack("<4Q", _remainder(rest)))
    for _ in range(4):
        update([_turned(v0[i]) for i in (2, 3, 0, 1)])
    return (v0[0] + v1[0] + mul0[0] + mul1[0]) & MASK


def _turned(number: int) -> int:
    return number >> 32 | (number << 32) & MASK


def _rotated(half: int, by: int) -> int:
    return (half << by | half >> (32 - by)) & 0xFFFFFFFF


def _zipped(one: int, other: int) -> tuple[int, int]:
    both = struct.pack("<QQ", one, other)
    low = bytes(both[i] for i in (3, 12, 2, 5, 14, 1, 15, 0))
    high = bytes(both[i] for i in (11, 4, 10, 13, 9, 6, 8, 7))
    return int.from_bytes(low, "little"), int.from_bytes(high, "little")


def _remainder(rest: bytes) -> bytes:
    over = len(rest) % 4
    whole = len(rest) - over
    packet = bytearray(rest[:whole].ljust(32, b"\0"))
    if len(rest) >= 16:
        packet[28:] = rest[-4:]
    elif over:
        packet[16:19] = bytes((rest[whole], rest[whole + over // 2], rest[-1]))
    return bytes(packet)
