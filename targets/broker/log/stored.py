"""
The contents of a log: record batches, and before them entries of the message sets (magic 0 and 1) of old releases.

An entry of a message set becomes a batch without an epoch, with its bytes unchanged. Its offset is that of its
last message. The first offset of a compressed entry is inside it, and it is not opened: it counts as beginning
where the entry before it ends. Only logs hold such entries; producers may not send them.
Source:  Kafka, LegacyRecord, AbstractLegacyRecordBatch, and Log.analyzeAndValidateRecords, which takes the last
         offset for the first one here, so as not to open anything.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from crc32c import crc32c

from targets.broker.core.messages import Batch, ErrorCode, Payload
from targets.broker.log import batch
from targets.broker.log.batch import HEADER_BYTES, PREFIX_BYTES, Damage, Header, Split

OLD_MAGICS: Final = frozenset({0, 1})

# Offset, length, CRC-32, magic, attributes; in magic 1 the timestamp; then key and value, each with its length.
_HEAD: Final = struct.Struct(">qiIbb")
_TIMESTAMP: Final = struct.Struct(">q")
_MAGIC_AT: Final = 16
_LENGTH_MIN: Final = {0: 14, 1: 22}
_UNKNOWN: Final = -1


def is_old(entry: Payload) -> bool:
    """Return True if the bytes begin with an entry of a message set; zeros do not, as their length is 0."""
    return len(entry) > _MAGIC_AT and entry[_MAGIC_AT] in OLD_MAGICS and any(entry[8:PREFIX_BYTES])


def examine(head: Payload, room: int) -> Header | Damage:
    """Validate the header of a batch or an entry by itself, as batch.examine does."""
    if not is_old(head) or len(head) < _HEAD.size:
        return batch.examine(head, room)
    offset, length, crc, magic, attributes = _HEAD.unpack_from(head)
    if length < _LENGTH_MIN[magic]:
        return Damage.LENGTH
    if length + PREFIX_BYTES > room:
        return Damage.TORN
    if offset < 0:
        return Damage.DISORDER
    time = max_timestamp_of(head)
    return Header(
        base_offset=offset,
        length=length,
        leader_epoch=_UNKNOWN,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=time,
        max_timestamp=time,
        producer_id=_UNKNOWN,
        producer_epoch=_UNKNOWN,
        base_sequence=_UNKNOWN,
        count=_UNKNOWN,
    )


def crc_of(entry: Payload) -> int:
    """Compute the checksum of a whole batch (CRC-32C) or entry (CRC-32), over all bytes that it covers."""
    return crc32(memoryview(entry)[_MAGIC_AT:]) if is_old(entry) else batch.crc_of(entry)


def crc_from(magic: int) -> int:
    """Return the first byte of a batch or entry that its checksum covers."""
    return _MAGIC_AT if magic in OLD_MAGICS else batch.CRC_FROM


def crc_of_pieces(magic: int, pieces: Iterable[Payload]) -> int:
    """Compute the checksum of a batch or entry whose bytes from `crc_from` on come in pieces."""
    crc, more = 0, crc32 if magic in OLD_MAGICS else crc32c
    for piece in pieces:
        crc = more(piece, crc)
    return crc


def changed(entry: Payload, base_offset: int, leader_epoch: int, crc: int) -> str:
    """
    Return how the bytes of a batch or an entry differ from those that had these fields, "" if they do not.

    The checksum does not cover a batch's base offset and epoch: those are compared. Those of an entry of an old
    message set are not: its first offset is not in its bytes, and it has no epoch.
    """
    computed = crc_of(entry)
    if computed != crc:
        return f"checksum {computed:#010x} of its bytes; expected {crc:#010x}, as when it was written"
    if is_old(entry):
        return ""
    there = batch.beginning_of(entry)
    expected = (base_offset, len(entry) - PREFIX_BYTES, leader_epoch, batch.MAGIC, crc)
    if there == expected:
        return ""
    fields = zip(("base offset", "length", "epoch", "magic", "CRC"), there, expected, strict=True)
    return "; ".join(f"{name} {found}; expected {due}" for name, found, due in fields if found != due)


def max_timestamp_of(entry: Payload) -> int:
    """Return the greatest timestamp of a batch or entry; -1 in magic 0, which has none."""
    if not is_old(entry):
        return batch.max_timestamp_of(entry)
    return int(_TIMESTAMP.unpack_from(entry, _HEAD.size)[0]) if entry[_MAGIC_AT] else _UNKNOWN


def producer_of(entry: Payload) -> tuple[int, int, int]:
    """Return the producer id, the producer epoch and the base sequence of a batch; an entry has none."""
    return (_UNKNOWN, _UNKNOWN, _UNKNOWN) if is_old(entry) else batch.producer_of(entry)


def first_offset(magic: int, base_offset: int, end: int) -> int:
    """Return the first offset of a batch or entry; the log ended at `end` before it."""
    return end if magic in OLD_MAGICS else base_offset


def first_offset_of(stored: Batch, end: int) -> int:
    """Return the first offset of a whole batch or entry; the log ended at `end` before it."""
    return end if is_old(stored.payload) else stored.base_offset


def split_stored(data: Payload) -> Split:
    """
    Split a leader's bytes, as its follower fetches them: offsets rise, checksums are right.

    As batch.split_produced, but empty bytes are no error, and entries of message sets are accepted, each as a
    Batch from its offset to its offset.
    """
    view = memoryview(data)
    found: list[Batch] = []
    position = 0
    while position < len(view):
        header = examine(view[position : position + HEADER_BYTES], len(view) - position)
        if isinstance(header, Damage):
            return batch.refuse(header, view, position)
        payload = view[position : position + header.size]
        if crc_of(payload) != header.crc:
            return batch.refuse(Damage.CRC, view, position)
        if found and header.base_offset < found[-1].next_offset:
            expected = f"expected at least {found[-1].next_offset}"
            text = f"batch at byte {position}: base offset {header.base_offset}; {expected}"
            return (), ErrorCode.INVALID_RECORD, text
        found.append(batch.batch_of(header, payload))
        position += header.size
    return tuple(found), ErrorCode.NONE, ""
