"""
Record batches (magic 2), parsed by header alone; records pass through unread.

Base offset (bytes 0-7) and partition leader epoch (12-15) lie outside the CRC: a leader sets them, and a
follower appends the batch byte for byte.
Headers and CRCs are validated here and nowhere else: a producer's on arrival, a leader's at its follower, and
those on disk after a crash.
Source:  Kafka, DefaultRecordBatch (record batch v2); KIP-101, "the epoch in every batch".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from crc32c import crc32c

from targets.broker.core.messages import Batch, ErrorCode, Payload

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp,
# max timestamp, producer id, producer epoch, base sequence, record count
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
# The fields that a leader writes: base offset, length (unchanged), leader epoch.
_STAMPED: Final = struct.Struct(">qii")
# The same with what follows: magic, CRC.
_BEGINNING: Final = struct.Struct(">qiibI")
_TIMESTAMP: Final = struct.Struct(">q")
_PRODUCER: Final = struct.Struct(">qhi")

HEADER_BYTES: Final = _HEADER.size
# Bytes before the length field and of it, which the length does not count.
PREFIX_BYTES: Final = 12
LENGTH_MIN: Final = HEADER_BYTES - PREFIX_BYTES
MAGIC: Final = 2
# Of a header's attributes: the codec's number, and what marks a batch of a transaction, and one of its markers.
CODEC_MASK: Final = 0x07
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
# The base timestamp is when tombstones may go (KIP-534); those of records count from it all the same.
DELETE_HORIZON: Final = 0x40
# The first byte that a batch's checksum covers.
CRC_FROM: Final = 21

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_MAX_TIMESTAMP_AT: Final = 35
_PRODUCER_AT: Final = 43


class Damage(StrEnum):
    """Why bytes are not a sound batch; the value is the `reason` of a `recovered` line in the history."""

    TORN = "torn"
    ZEROS = "zeros"
    LENGTH = "length"
    MAGIC = "magic"
    CRC = "crc"
    DISORDER = "disorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """
    The fields of a batch's first 61 bytes.

    Attributes:
        length: the number of bytes after the length field.
        base_timestamp, max_timestamp: milliseconds since the Unix epoch, -1 for none.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size(self) -> int:
        """Return the size of the whole batch in bytes."""
        return self.length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        """Return the offset of the batch's last record, inclusive."""
        return self.base_offset + self.last_offset_delta

    @property
    def horizon_ms(self) -> int | None:
        """Return when the batch's tombstones may go, None if a cleaning has not said it yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


# A batch as it will be stored, and its bytes in pieces, to be written one after the other.
Stored: TypeAlias = tuple[Batch, tuple[Payload, ...]]
Split: TypeAlias = tuple[tuple[Batch, ...], ErrorCode, str]


def parse_header(buffer: Payload, position: int = 0) -> Header:
    """Read the header at `position`; the caller ensures that 61 bytes are there."""
    raw = _HEADER.unpack_from(buffer, position)
    return Header(
        base_offset=raw[0],
        length=raw[1],
        leader_epoch=raw[2],
        magic=raw[3],
        crc=raw[4],
        attributes=raw[5],
        last_offset_delta=raw[6],
        base_timestamp=raw[7],
        max_timestamp=raw[8],
        producer_id=raw[9],
        producer_epoch=raw[10],
        base_sequence=raw[11],
        count=raw[12],
    )


def examine(head: Payload, room: int) -> Header | Damage:
    """
    Validate a header by itself, without its records.

    Args:
        head: the batch's first bytes (61, or fewer when there are no more).
        room: the number of bytes from the batch's first one to the end of the file or the buffer.
    """
    if room < HEADER_BYTES:
        return Damage.TORN if any(head) else Damage.ZEROS
    header = parse_header(head)
    if header.length == 0:
        return Damage.ZEROS
    if header.magic != MAGIC:
        return Damage.MAGIC
    if header.length < LENGTH_MIN:
        return Damage.LENGTH
    if header.size > room:
        return Damage.TORN
    if header.last_offset_delta < 0 or header.base_offset < 0:
        return Damage.DISORDER
    return header


def crc_of(batch: Payload) -> int:
    """Compute the CRC-32C of a whole batch, over all bytes that its header's CRC covers."""
    return int(crc32c(memoryview(batch)[CRC_FROM:]))


def stamp(batch: Batch, base_offset: int, leader_epoch: int) -> Stored:
    """
    Set a batch's base offset and leader epoch; return the batch and its bytes, uncopied.

    Its CRC stays valid.
    """
    head = _STAMPED.pack(base_offset, batch.size - PREFIX_BYTES, leader_epoch)
    last_offset = base_offset + batch.last_offset - batch.base_offset
    stamped = Batch(
        base_offset=base_offset,
        last_offset=last_offset,
        leader_epoch=leader_epoch,
        crc=batch.crc,
        size=batch.size,
        payload=batch.payload,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    return stamped, (head, memoryview(batch.payload)[len(head) :])


def build(header: Header, records: bytes) -> bytes:
    """Return a whole batch: this header, with the length and the CRC that fit these records, and the records."""
    fields = (
        header.base_offset,
        LENGTH_MIN + len(records),
        header.leader_epoch,
        header.magic,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )
    whole = bytearray(_HEADER.pack(*fields) + records)
    _CRC.pack_into(whole, _CRC_AT, crc_of(memoryview(whole)))
    return bytes(whole)


def beginning_of(batch: Payload) -> tuple[int, int, int, int, int]:
    """Return a whole batch's base offset, length, leader epoch, magic, and the CRC that its header has."""
    base_offset, length, leader_epoch, magic, crc = _BEGINNING.unpack_from(batch)
    return base_offset, length, leader_epoch, magic, crc


def max_timestamp_of(payload: Payload) -> int:
    """Return the greatest timestamp of a whole batch's records."""
    return int(_TIMESTAMP.unpack_from(payload, _MAX_TIMESTAMP_AT)[0])


def producer_of(payload: Payload) -> tuple[int, int, int]:
    """Return the producer id, the producer epoch and the base sequence of a whole batch."""
    producer_id, producer_epoch, base_sequence = _PRODUCER.unpack_from(payload, _PRODUCER_AT)
    return producer_id, producer_epoch, base_sequence


def batch_of(header: Header, payload: Payload) -> Batch:
    """Return the core's view of a batch whose bytes are `payload`."""
    return Batch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.leader_epoch,
        crc=header.crc,
        size=header.size,
        payload=payload,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


def refuse(damage: Damage, view: memoryview, position: int) -> Split:
    """Return the error and its text for bytes whose damage begins at `position`."""
    where = f"batch at byte {position} of {len(view)}"
    if damage is Damage.MAGIC:
        magic = parse_header(view, position).magic
        if magic in (0, 1):
            text = f"{where}: magic {magic}; expected {MAGIC}, send with a client of Kafka 0.11 or later"
            return (), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, text
        return (), ErrorCode.CORRUPT_MESSAGE, f"{where}: magic {magic}; expected {MAGIC}"
    if damage is Damage.DISORDER:
        header = parse_header(view, position)
        text = f"{where}: base offset {header.base_offset}, last offset delta {header.last_offset_delta}"
        return (), ErrorCode.INVALID_RECORD, f"{text}; expected neither below 0"
    return (), ErrorCode.CORRUPT_MESSAGE, f"{where}: {damage.value}; expected a whole batch whose CRC holds"
