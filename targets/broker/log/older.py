"""
Message format 1, which a topic may ask for: a record batch becomes a message set of Kafka 0.10.

An uncompressed batch becomes one message for each record, a compressed one a single message around all of them,
whose offsets inside count from 0 and whose own is that of the last. Keys, values and times stay; epoch and
producer have no place. What a message cannot hold is refused before anything is written: headers, and zstd.
Source:  KIP-31 (offsets inside), KIP-32 (timestamps), KIP-98 (what is lost); Kafka, LogValidator.
         convertAndAssignOffsetsNonCompressed, LegacyRecord.write. Kafka answers UNKNOWN_SERVER_ERROR for headers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple
from zlib import crc32

from targets.broker.core.log_port import FormatError
from targets.broker.core.messages import Batch, Payload
from targets.broker.limits import Limits
from targets.broker.log.batch import CODEC_MASK, HEADER_BYTES, PREFIX_BYTES, Header, Stored, parse_header
from targets.broker.log.compression import open_records, pack_records
from targets.broker.log.records import number_at

FORMAT_1: Final = 1

_PREFIX: Final = struct.Struct(">qi")
_CRC: Final = struct.Struct(">I")
# Magic, attributes, timestamp.
_BODY: Final = struct.Struct(">bbq")
_LENGTH: Final = struct.Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
# The bit of the attributes that says that the broker set the times; it is the same in both formats.
APPEND_TIME: Final = 0x08
_ZSTD: Final = 4
_NO_EPOCH: Final = -1
_OPENED_BYTES_MAX: Final = Limits().batch_opened_bytes_max


class _Record(NamedTuple):
    time: int
    key: Payload | None
    value: Payload | None


def as_messages(batch: Batch, base_offset: int) -> list[Stored]:
    """
    Return a producer's batch in format 1, from this offset on; each message is a batch without an epoch.

    Raises:
        FormatError: the format has no place for what the batch holds.
    """
    header = parse_header(batch.payload)
    codec = header.attributes & CODEC_MASK
    if codec == _ZSTD:
        raise FormatError("a batch compressed with zstd; expected another codec, as message format 1 has none")
    opened = memoryview(batch.payload)[HEADER_BYTES:]
    if codec:
        opened = open_records(codec, opened, _OPENED_BYTES_MAX)
    records = list(_records(header, opened))
    times = header.attributes & APPEND_TIME
    if not codec:
        entries = (message(offset, times, *record) for offset, record in enumerate(records, base_offset))
        return [_stored(base_offset + delta, entry) for delta, entry in enumerate(entries)]
    inside = b"".join(message(delta, times, *record) for delta, record in enumerate(records))
    last, latest = base_offset + len(records) - 1, max(record.time for record in records)
    return [_stored(last, message(last, times | codec, latest, None, pack_records(codec, inside)))]


def _records(header: Header, data: memoryview) -> Iterator[_Record]:
    """Yield the records, which were checked when they came."""
    at = 0
    for number in range(header.count):
        length, body = number_at(data, at)
        delta, look = number_at(data, body + 1)
        _, look = number_at(data, look)
        key, look = _bytes_at(data, look)
        value, look = _bytes_at(data, look)
        headers, _ = number_at(data, look)
        if headers:
            raise FormatError(f"record {number} has {headers} headers; expected 0, as message format 1 has none")
        time = header.max_timestamp if header.attributes & APPEND_TIME else header.base_timestamp + delta
        yield _Record(time, key, value)
        at = body + length


def _bytes_at(data: memoryview, at: int) -> tuple[memoryview | None, int]:
    length, at = number_at(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def message(offset: int, attributes: int, time: int, key: Payload | None, value: Payload | None) -> bytes:
    """Return a message of format 1."""
    body = _BODY.pack(FORMAT_1, attributes, time) + _sized(key) + _sized(value)
    return _PREFIX.pack(offset, _CRC.size + len(body)) + _CRC.pack(crc32(body)) + body


def _sized(data: Payload | None) -> bytes:
    return _NULL if data is None else _LENGTH.pack(len(data)) + bytes(data)


def _stored(last_offset: int, message: bytes) -> Stored:
    """Return a message as it is read back: where it begins is told by what is before it (`stored`)."""
    (crc,) = _CRC.unpack_from(message, PREFIX_BYTES)
    stored = Batch(
        base_offset=last_offset,
        last_offset=last_offset,
        leader_epoch=_NO_EPOCH,
        crc=crc,
        size=len(message),
        payload=message,
    )
    return stored, (message,)
