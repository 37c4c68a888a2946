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

from harness import limits
from harness.logs.record import NO_TIMESTAMP, Record
from harness.logs.source import BytesSource, Source
from harness.logs.walking import Stop, walked
from targets.kafka_family.logs import batch, records
from targets.kafka_family.logs.batch import Header, Walk
from targets.kafka_family.logs.codec import CodecError, decompress, fix_lz4_checksum
from targets.kafka_family.logs.records import RecordError

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
    Return the sound batches and old messages of the bytes, as batch.walk does for batches alone.

    A message's header has leader epoch -1, and its `payload` is the message's bytes from the checksum on.
    """
    return Walk.of(headers(BytesSource(data), next_offset), len(data))


def headers(source: Source, next_offset: int = 0) -> Iterator[Header | Stop]:
    """
    Yield the sound batches and old messages in file order, and a Stop at a position that has neither.

    Raises:
        OSError: The source cannot be read.
    """
    return walked(source, _header_at, next_offset)


def records_of(header: Header) -> tuple[Record, ...]:
    """
    Return the records of a batch or of an old message, by offset.

    Raises:
        CodecError: As records.records_of.
        RecordError: As records.records_of.
    """
    return tuple(iterate(header))


def iterate(header: Header) -> Iterator[Record]:
    """Yield the records of a batch or of an old message; raises as records_of, also after the first ones."""
    if header.magic not in OLD_MAGICS:
        yield from records.iterate(header)
    elif not header.codec_id:
        yield _record(header.last_offset, header.payload, 0, len(header.payload))
    else:
        data = _opened(header)
        for record in _inner(header, data):
            yield replace(record, timestamp=header.max_timestamp) if header.log_append_time else record


def _header_at(source: Source, position: int, next_offset: int) -> Header | Stop:
    """Return the batch or the old message that begins at the position, or why none does."""
    head = source.at(position, _HEAD.size + _BODY_BYTES_MIN)
    if len(head) < _HEAD.size + _BODY_BYTES_MIN or head[_MAGIC_AT] not in OLD_MAGICS:
        return batch.header_at(source, position, next_offset)
    _, length = _HEAD.unpack_from(head)
    if length < _BODY_BYTES_MIN:
        return batch.header_at(source, position, next_offset)
    return _message(source, position, length, next_offset)


def _message(source: Source, position: int, length: int, next_offset: int) -> Header | Stop:
    """Return one message's header, or why no sound message begins here."""

    def refused(text: str) -> Stop:
        short = batch.is_short(source, position)
        return Stop(position=position, text=f"position {position}: {text}", short=short)

    left = source.size - position - _HEAD.size
    if left >= length > limits.LOG_BATCH_BYTES_MAX:
        return refused(f"message length is {length}; this reader takes at most {limits.LOG_BATCH_BYTES_MAX}")
    data = source.at(position, _HEAD.size + length) if length <= left else b""
    if len(data) < _HEAD.size + length:
        return refused(f"torn, message length is {length} and {left} bytes are left")
    offset, _ = _HEAD.unpack_from(data)
    payload = data[_HEAD.size :]
    stored, magic, attributes = _BODY.unpack_from(payload)
    if stored != (computed := zlib.crc32(memoryview(payload)[_CRC_FROM - _HEAD.size :])):
        return refused(f"message's CRC-32 is {stored:#010x}, its bytes have {computed:#010x}")
    time = _TIMESTAMP.unpack_from(payload, _BODY.size)[0] if magic else NO_TIMESTAMP
    header = _spread(
        Header(
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
            size=len(data),
            payload=payload,
            problem="",
        )
    )
    if header.base_offset < next_offset:
        expected = f"expected {next_offset} or later, the end of the batch before it"
        header = replace(header, problem=f"base offset is {header.base_offset}; {expected}")
    return header


def _spread(header: Header) -> Header:
    """Set the first offset of a compressed message; one that cannot be read counts as its last message alone."""
    if not header.codec_id:
        return header
    first, count = header.base_offset, 0
    try:
        for record in _inner(header, _opened(header)):
            first = first if count else record.offset
            count += 1
    except (CodecError, RecordError):
        return header
    return replace(header, base_offset=first, record_count=count) if count else header


def _opened(header: Header) -> bytes:
    """Return the message set inside a compressed message."""
    around = _record(header.last_offset, header.payload, 0, len(header.payload))
    packed = around.value or b""
    return decompress(header.codec_id, fix_lz4_checksum(packed) if header.magic == 0 else packed)


def _inner(header: Header, data: bytes) -> Iterator[Record]:
    """Yield the messages of the set inside a compressed message."""
    shift = 0
    if header.magic == 1:
        # The stored offsets count from 0, and the outer message has the offset of the last one. That is looked for
        # first: records that wait for it would be the messages in memory once more.
        for offset, _, _ in _places(data):
            shift = header.last_offset - offset
    for offset, start, end in _places(data):
        yield _record(offset + shift, data, start, end)


def _places(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield each message of a set: its stored offset, where it begins, from its checksum on, and where it ends."""
    position = count = 0
    while position < len(data):
        count += 1
        if count > limits.LOG_BATCH_RECORDS_MAX:
            raise RecordError(f"more than {limits.LOG_BATCH_RECORDS_MAX} messages, the limit of this reader")
        try:
            offset, length = _HEAD.unpack_from(data, position)
        except struct.error as error:
            raise RecordError(f"byte {position} of {len(data)}: {error}; expected a message") from error
        start = position + _HEAD.size
        if not _BODY_BYTES_MIN <= length <= len(data) - start:
            raise RecordError(
                f"byte {position} of {len(data)}: message length is {length}; expected one that fits"
            )
        yield offset, start, start + length
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
