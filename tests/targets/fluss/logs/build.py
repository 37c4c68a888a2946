"""Write batches and segments of Fluss for tests, with code that shares nothing with the reader."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import crc32c
import pyarrow as pa

TIME_MS = 1_800_000_000_000
TEXT = pa.schema([("v", pa.string())])


def message(columns: pa.RecordBatch, codec: str | None = None, version: object = None) -> bytes:
    """Encode an Arrow record batch without its schema, as it is in a stream behind it."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(
        compression=codec, metadata_version=version or pa.ipc.MetadataVersion.V5, unify_dictionaries=False
    )
    with pa.ipc.new_stream(sink, columns.schema, options=options) as stream:
        stream.write_batch(columns)
    *_, last = pa.ipc.MessageReader.open_stream(sink.getvalue())
    return last.serialize().to_pybytes()


def texts(*values: str | None, codec: str | None = None) -> bytes:
    """Encode the one column of text that the harness's tables have."""
    return message(pa.record_batch([pa.array(values, pa.string())], schema=TEXT), codec)


def batch(
    base: int,
    *values: str | None,
    magic: int = 0,
    epoch: int = 0,
    codec: str | None = None,
    changes: bytes | None = None,
    arrow: bytes | None = None,
    count: int | None = None,
    delta: int | None = None,
) -> bytes:
    """Encode a batch with one record for every value; `arrow` replaces what the values would be."""
    payload = texts(*values, codec=codec) if arrow is None else arrow
    body = struct.pack(
        "<hbiqii",
        1,
        1 if changes is None else 0,
        len(values) - 1 if delta is None else delta,
        -1,
        -1,
        len(values) if count is None else count,
    )
    return stamp(base, body + (changes or b"") + payload, magic=magic, epoch=epoch)


def stamp(base: int, body: bytes, *, magic: int = 0, epoch: int = 0) -> bytes:
    """Return the batch: what the checksum does not cover, the checksum, and the body."""
    stamped = struct.pack("<bq", magic, TIME_MS)
    if magic:
        stamped += struct.pack("<i", epoch)
    stamped += struct.pack("<I", crc32c.crc32c(body))
    return struct.pack("<qi", base, len(stamped) + len(body)) + stamped + body


def bucket(data: Path, *segments: tuple[int, Sequence[bytes]], name: str = "fencepost/t-0/log-0") -> Path:
    """Write a bucket's segments, each (first offset, batches), into a data directory; return its folder."""
    directory = data / name
    directory.mkdir(parents=True, exist_ok=True)
    for first, batches in segments:
        (directory / f"{first:020d}.log").write_bytes(b"".join(batches))
    return directory
