"""
Read message sets, formats v0 and v1, which Apache Kafka wrote before 0.11: they have no batch and no leader epoch.

An uncompressed message is read as a batch of one record. A compressed message holds a message set, and its offset
is that of its last message. Inside, offsets count from 0 in v1 and are absolute in v0. A segment may hold old
messages and newer batches one after the other, as a migration leaves it; `walk` and `records_of` read both.

Source:  Apache Kafka, clients/.../record/LegacyRecord.java, AbstractLegacyRecordBatch.java; KIP-31, KIP-32.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from harness.logdir import batch, records
from harness.logdir.batch import Header, Walk
from harness.logdir.codec import CodecError, decompress, fix_lz4_checksum
from harness.logdir.records import NO_TIMESTAMP, Record, RecordError

OLD_MAGICS: Final = frozenset({0, 1})
NO_EPOCH: Final = -1

# Offset and length; then checksum, magic and attributes.
_HEAD: Final = struct.Struct(">qi")
_BODY: Final = struct.Struct(">IbB")
_MAGIC_AT: Final = _HEAD.size + 4
_CRC_FROM: Final = _HEAD.size + 4
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
# The shortest body: key and value are null.
_BODY_BYTES_MIN: Final = _BODY.size + 2 * _LENGTH.size


def walk(data: bytes, *, next_offset: int = 0) -> Walk:
    """
    Return the sound batches and old messages of the bytes, as harness.logdir.batch.walk does for batches alone.

    A message's header has leader epoch -1, and its `payload` is the message's bytes from the checksum on.
    """
    headers: list[Header] = []
    found: tuple[Header, ...]
    position, stopped = 0, ""
    while position < len(data) and not stopped:
        if _is_old(data, position):
            header, stopped = _message(data, position, next_offset)
            found = (header,) if header is not None else ()
        else:
            # The walk of batches stops at an old message; the next iteration reads that message.
            walked = batch.walk(data[position:], next_offset=next_offset)
            found = tuple(replace(header, position=position + header.position) for header in walked.headers)
            if walked.stopped and not _is_old(data, position + walked.sound_bytes):
                stopped = f"from byte {position} on, {walked.stopped}" if position else walked.stopped
        headers += found
        position += sum(header.size for header in found)
        next_offset = max((next_offset, *(header.last_offset + 1 for header in found)))
    return Walk(
        headers=tuple(headers),
        sound_bytes=position,
        stopped=stopped,
        short=bool(stopped) and batch.is_short(data, position),
    )


def records_of(header: Header) -> tuple[Record, ...]:
    """
    Return the records of a batch or of an old message, by offset.

    Raises:
        CodecError: As harness.logdir.records.records_of.
        RecordError: As harness.logdir.records.records_of.
    """
    if header.magic not in OLD_MAGICS:
        return records.records_of(header)
    if not header.codec_id:
        return (_record(header.last_offset, header.payload, 0, len(header.payload)),)
    inner = tuple(_inner(header))
    # In format v1 the inner offsets count from 0, and the outer message has the offset of the last one.
    shift = header.last_offset - inner[-1].offset if inner and header.magic == 1 else 0
    return tuple(_shifted(header, record, shift) for record in inner)


def _is_old(data: bytes, position: int) -> bool:
    if position + _HEAD.size + _BODY_BYTES_MIN > len(data):
        return False
    _, length = _HEAD.unpack_from(data, position)
    return data[position + _MAGIC_AT] in OLD_MAGICS and length >= _BODY_BYTES_MIN


def _message(data: bytes, position: int, next_offset: int) -> tuple[Header | None, str]:
    """Return one message's header, or None and the reason why no sound message begins here."""
    offset, length = _HEAD.unpack_from(data, position)
    end = position + _HEAD.size + length
    if end > len(data):
        left = len(data) - position - _HEAD.size
        return None, f"position {position}: torn, message length is {length} and {left} bytes are left"
    payload = data[position + _HEAD.size : end]
    stored, magic, attributes = _BODY.unpack_from(payload)
    if stored != (computed := zlib.crc32(payload[_CRC_FROM - _HEAD.size :])):
        text = f"message's CRC-32 is {stored:#010x}, its bytes have {computed:#010x}"
        return None, f"position {position}: {text}"
    time = _TIMESTAMP.unpack_from(payload, _BODY.size)[0] if magic else NO_TIMESTAMP
    header = Header(
        base_offset=offset,
        last_offset=offset,
        leader_epoch=NO_EPOCH,
        magic=magic,
        crc=stored,
        attributes=attributes,
        base_timestamp=time,
        max_timestamp=time,
        record_count=1,
        position=position,
        size=end - position,
        payload=payload,
        problem="",
    )
    header = _spread(header)
    if header.base_offset < next_offset:
        expected = f"expected {next_offset} or later, the end of the batch before it"
        header = replace(header, problem=f"base offset is {header.base_offset}; {expected}")
    return header, ""


def _spread(header: Header) -> Header:
    """Set the first offset of a compressed message; one that cannot be read counts as its last message alone."""
    if not header.codec_id:
        return header
    try:
        inside = records_of(header)
    except (CodecError, RecordError):
        return header
    return replace(header, base_offset=inside[0].offset, record_count=len(inside)) if inside else header


def _inner(header: Header) -> Iterator[Record]:
    """Yield the messages inside a compressed one, with their stored offsets."""
    around = _record(header.last_offset, header.payload, 0, len(header.payload))
    packed = around.value or b""
    data = decompress(header.codec_id, fix_lz4_checksum(packed) if header.magic == 0 else packed)
    position = 0
    while position < len(data):
        try:
            offset, length = _HEAD.unpack_from(data, position)
        except struct.error as error:
            raise RecordError(f"byte {position} of {len(data)}: {error}; expected a message") from error
        start = position + _HEAD.size
        if not _BODY_BYTES_MIN <= length <= len(data) - start:
            raise RecordError(
                f"byte {position} of {len(data)}: message length is {length}; expected one that fits"
            )
        yield _record(offset, data, start, start + length)
        position = start + length


def _record(offset: int, data: bytes, start: int, end: int) -> Record:
    """Read a message from its checksum on; its checksum, or that of the message around it, was verified before."""
    try:
        _, magic, _ = _BODY.unpack_from(data, start)
        position = start + _BODY.size
        time = NO_TIMESTAMP
        if magic == 1:
            (time,) = _TIMESTAMP.unpack_from(data, position)
            position += _TIMESTAMP.size
        key, position = _nullable(data, position, end)
        value, position = _nullable(data, position, end)
    except struct.error as error:
        raise RecordError(f"message at offset {offset}: {error}") from error
    if position != end:
        raise RecordError(f"message at offset {offset}: {end - position} bytes follow its value; expected none")
    return Record(offset=offset, timestamp=time, key=key, value=value)


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(data, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    if position + length > end:
        raise RecordError(f"a field's length is {length}; {end - position} bytes are left")
    return data[position : position + length], position + length


def _shifted(header: Header, record: Record, shift: int) -> Record:
    time = header.max_timestamp if header.log_append_time else record.timestamp
    return replace(record, offset=record.offset + shift, timestamp=time)
