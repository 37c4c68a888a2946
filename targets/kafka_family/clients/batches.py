"""
Write a record batch (format v2) as a producer sends it: offsets from 0, no epoch, and mostly no timestamp.

Without a timestamp (-1) a record has no age, so retention keeps it, and equal values make equal batches.
Source:  Apache Kafka, clients/.../record/DefaultRecordBatch.java and DefaultRecord.java.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import cramjam
import crc32c

from harness.keys import headers_of, is_tombstone, key_bytes
from harness.model import UsageError
from harness.registry import pick
from harness.workload.numbering import UNNUMBERED, Numbers

# The fields under the checksum, before the records: attributes, last offset delta, base and max timestamp,
# producer id, producer epoch, base sequence, record count.
_COVERED: Final = struct.Struct(">hiqqqhii")
# base offset, length, leader epoch, magic, checksum.
_BEFORE: Final = struct.Struct(">qiibI")
# The bytes that the length does not count: base offset and the length itself.
_UNCOUNTED_BYTES: Final = 12
_MAGIC: Final = 2
# How far into a value its key may reach, and whether it is a tombstone.
_KEY_BYTES_MAX: Final = 16
_NONE: Final = -1
NO_TIME: Final = -1


def write_batch(
    values: Sequence[bytes], codec: str, numbers: Numbers = UNNUMBERED, *, time_ms: int = NO_TIME
) -> bytes:
    """
    Write one batch with a record for every value, and with the key that a value says.

    Args:
        values: the records' values, at least one.
        codec: a name of CODECS.
        numbers: of an idempotent producer.
        time_ms: of all records, since 1970.

    Raises:
        UsageError: the codec is unknown, or there are no values.
    """
    if not values:
        raise UsageError("a batch of no records; expected at least one")
    number, compress = pick("codec", CODECS, codec)
    records = compress(b"".join(_record(at, value) for at, value in enumerate(values)))
    covered = _COVERED.pack(number, len(values) - 1, time_ms, time_ms, *numbers, len(values)) + records
    length = _BEFORE.size - _UNCOUNTED_BYTES + len(covered)
    return _BEFORE.pack(0, length, _NONE, _MAGIC, crc32c.crc32c(covered)) + covered


def _record(at: int, value: bytes) -> bytes:
    """Write the record's length, then attributes, time delta, offset delta, key, value and headers."""
    beginning = value[:_KEY_BYTES_MAX].decode("latin-1")
    deletes = is_tombstone(beginning)
    headers = headers_of(value.decode()) if deletes else []
    body = b"\x00" + _varint(0) + _varint(at) + _bytes(key_bytes(beginning)) + _bytes(None if deletes else value)
    body += _varint(len(headers)) + b"".join(_bytes(name.encode()) + _bytes(text) for name, text in headers)
    return _varint(len(body)) + body


def _bytes(data: bytes | None) -> bytes:
    """Write bytes after their length, -1 for none."""
    return _varint(_NONE) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Write a zigzag varint."""
    left = (number << 1) ^ (number >> 63)
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _gzip(records: bytes) -> bytes:
    return bytes(cramjam.gzip.compress(records))


def _snappy(records: bytes) -> bytes:
    # One raw block, as librdkafka writes it.
    return bytes(cramjam.snappy.compress_raw(records))


def _lz4(records: bytes) -> bytes:
    # Kafka reads no frame whose blocks depend on each other ("Dependent block stream is unsupported").
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(records)
    return bytes(compressor.finish())


def _zstd(records: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(records))


# Name -> Kafka's number for the codec, and its compressor.
CODECS: Final[dict[str, tuple[int, Callable[[bytes], bytes]]]] = {
    "none": (0, bytes),
    "gzip": (1, _gzip),
    "snappy": (2, _snappy),
    "lz4": (3, _lz4),
    "zstd": (4, _zstd),
}
