"""Write record batches and segments for tests, with code that shares nothing with the reader."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import cramjam
import crc32c

TIME_MS = 1_500_000_000_000
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def varint(number: int) -> bytes:
    """Encode a zigzag varint."""
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def field(content: bytes | None) -> bytes:
    """Encode bytes with their length in front; None is null."""
    return varint(-1) if content is None else varint(len(content)) + content


def record(
    delta: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    time_delta: int = 0,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> bytes:
    """Encode one record."""
    named = b"".join(field(name) + field(content) for name, content in headers)
    body = b"\x00" + varint(time_delta) + varint(delta) + field(key) + field(value) + varint(len(headers)) + named
    return varint(len(body)) + body


def xerial(data: bytes) -> bytes:
    """Compress as Kafka's Java code does: xerial's header, then blocks of at most 32 bytes here."""
    blocks = [bytes(cramjam.snappy.compress_raw(data[i : i + 32])) for i in range(0, len(data), 32)]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


def compress(codec: str, data: bytes) -> bytes:
    """Compress as librdkafka does."""
    match codec:
        case "none":
            return data
        case "gzip":
            return bytes(cramjam.gzip.compress(data))
        case "snappy":
            return bytes(cramjam.snappy.compress_raw(data))
        case "lz4":
            return bytes(cramjam.lz4.compress(data))
        case _:
            return bytes(cramjam.zstd.compress(data))


def batch(
    base: int,
    *values: str,
    epoch: int = 0,
    codec: str = "none",
    attributes: int = 0,
    payload: bytes | None = None,
    count: int | None = None,
    last_delta: int | None = None,
) -> bytes:
    """Encode a batch with one record for every value; payload replaces the compressed records."""
    records = b"".join(record(index, value.encode()) for index, value in enumerate(values))
    body = struct.pack(
        ">hiqqqhii",
        attributes | CODECS[codec],
        len(values) - 1 if last_delta is None else last_delta,
        TIME_MS,
        TIME_MS + 7,
        -1,
        -1,
        -1,
        len(values) if count is None else count,
    ) + (compress(codec, records) if payload is None else payload)
    return stamp(base, epoch, body)


def stamp(base: int, epoch: int, body: bytes) -> bytes:
    """Return the batch: the fields that the checksum does not cover, the checksum, and the body."""
    return struct.pack(">qiibI", base, len(body) + 9, epoch, 2, crc32c.crc32c(body)) + body


def partition(data: Path, *batches: bytes, epochs: Sequence[tuple[int, int]] | None = None) -> Path:
    """Write `t-0` with one segment into a data directory, and return the partition's directory."""
    directory = data / "t-0"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    if epochs is not None:
        lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs)]
        (directory / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
    return directory
