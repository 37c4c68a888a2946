"""
Read a batch's records: offset, time, key, value, headers.

Lengths and deltas are zigzag varints; a length of -1 means null.

Source:  Apache Kafka, clients/.../record/DefaultRecord.java.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness import limits
from harness.logs.record import Record
from targets.kafka_family.logs.batch import Header
from targets.kafka_family.logs.codec import decompress

_VARINT_BYTES_MAX: Final = 10
# Source: Apache Kafka, ControlRecordType.java.
_MARKERS: Final = {0: "abort", 1: "commit"}


class RecordError(ValueError):
    """A batch's records contradict its header; the text names the record and the byte."""


def records_of(header: Header) -> tuple[Record, ...]:
    """
    Return a batch's records, by offset.

    Raises:
        CodecError: The records do not decompress.
        RecordError: The records are cut short, run over, or do not rise within the batch's offsets.
    """
    return tuple(iterate(header))


def iterate(header: Header) -> Iterator[Record]:
    """Yield a batch's records, by offset; raises as records_of, also after the first ones."""
    if header.record_count > limits.LOG_BATCH_RECORDS_MAX:
        limit = f"this reader takes at most {limits.LOG_BATCH_RECORDS_MAX}"
        raise RecordError(f"the batch has {header.record_count} records; {limit}")
    data = decompress(header.codec_id, header.payload)
    position, least = 0, header.base_offset
    for index in range(header.record_count):
        try:
            record, position = _record(header, data, position)
        except (IndexError, ValueError) as error:
            raise RecordError(
                f"record {index} of {header.record_count}, byte {position} of {len(data)}: {error}"
            ) from error
        if not least <= record.offset <= header.last_offset:
            raise RecordError(
                f"record {index} has offset {record.offset}; expected {least} to {header.last_offset}"
            )
        yield record
        least = record.offset + 1
    if position != len(data):
        raise RecordError(
            f"{len(data) - position} bytes follow the last of {header.record_count} records; expected none"
        )


def marker_text(record: Record) -> str:
    """Return the kind of a control batch's record, from its key: a commit, an abort, or another marker."""
    kind = int.from_bytes((record.key or b"")[2:4] or b"\xff")
    return f"{_MARKERS.get(kind, 'control')} marker"


def _record(header: Header, data: bytes, start: int) -> tuple[Record, int]:
    """Read one record: length, attributes, time and offset deltas, key, value, headers."""
    length, position = varint(data, start)
    end = position + length
    if length < 0 or end > len(data):
        raise ValueError(f"length is {length}; expected 0 to {len(data) - position}, the bytes left")
    time_delta, position = varint(data, position + 1)
    offset_delta, position = varint(data, position)
    key, position = _nullable(data, position)
    value, position = _nullable(data, position)
    count, position = varint(data, position)
    if count < 0:
        raise ValueError(f"header count is {count}; expected 0 or more")
    if count > limits.LOG_RECORD_HEADERS_MAX:
        raise ValueError(f"header count is {count}; this reader takes at most {limits.LOG_RECORD_HEADERS_MAX}")
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        name, position = _nullable(data, position)
        content, position = _nullable(data, position)
        headers.append((name or b"", content))
    if position != end:
        raise ValueError(f"fields end at byte {position}; its length says {end}")
    record = Record(
        offset=header.base_offset + offset_delta,
        timestamp=header.max_timestamp if header.log_append_time else header.base_timestamp + time_delta,
        key=key,
        value=value,
        headers=tuple(headers),
    )
    return record, position


def varint(data: bytes, position: int) -> tuple[int, int]:
    """
    Read a zigzag varint of at most 64 bits; return its value and the position after it.

    Raises:
        IndexError: The bytes end within it.
        ValueError: It is longer than 10 bytes.
    """
    first = data[position]
    if first < 0x80:
        # Fast path: nearly all deltas and lengths have one byte.
        return (first >> 1) ^ -(first & 1), position + 1
    raw = shift = 0
    for _ in range(_VARINT_BYTES_MAX):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    raise ValueError(f"a varint runs on past {_VARINT_BYTES_MAX} bytes")


def _nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Read bytes after their length; a negative length is null."""
    length, position = varint(data, position)
    if length < 0:
        return None, position
    if position + length > len(data):
        raise ValueError(f"a field's length is {length}; {len(data) - position} bytes are left")
    return data[position : position + length], position + length
