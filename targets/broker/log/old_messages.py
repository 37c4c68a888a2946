"""
The messages inside an entry of an old message set, for compaction: of some the entry is made again with fewer.

A compressed entry of format 0 is not opened: Kafka then computed the checksum of lz4 otherwise.
Source:  Kafka, MemoryRecords.filterTo, which keeps the format; KIP-31 (offsets inside count from 0).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from targets.broker.core.messages import Payload
from targets.broker.limits import Limits
from targets.broker.log.batch import CODEC_MASK, PREFIX_BYTES
from targets.broker.log.compression import CodecError, TooLargeError, open_records, pack_records
from targets.broker.log.older import APPEND_TIME, FORMAT_1, message

_HEAD: Final = struct.Struct(">qiIbb")
_TIME: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_NO_TIME: Final = -1
_OPENED_BYTES_MAX: Final = Limits().batch_opened_bytes_max


class Message(NamedTuple):
    """One message: its offset in the log, its time, its key (None without one), and all its bytes."""

    offset: int
    time: int
    key: bytes | None
    is_tombstone: bool
    raw: memoryview


def messages_of(entry: Payload) -> list[Message] | None:
    """Return the messages of an entry, None if they cannot be read."""
    view = memoryview(entry)
    offset, _, _, magic, attributes = _HEAD.unpack_from(view)
    codec = attributes & CODEC_MASK
    if not codec:
        return [_read(view, 0, 0)]
    if magic != FORMAT_1:
        return None
    try:
        inside = open_records(codec, _value(view), _OPENED_BYTES_MAX)
        places = _places(inside)
        last = _HEAD.unpack_from(inside, places[-1])[0]
        return [_read(inside, place, offset - last) for place in places]
    except (CodecError, TooLargeError, struct.error, IndexError):
        return None


def with_only(entry: Payload, kept: Sequence[Message]) -> bytes:
    """Return an entry with some of its messages, at least one; its offset is that of the last one."""
    _, _, _, _, attributes = _HEAD.unpack_from(entry)
    codec = attributes & CODEC_MASK
    if not codec:
        return bytes(entry)
    (time,) = _TIME.unpack_from(entry, _HEAD.size)
    if not attributes & APPEND_TIME:
        time = max(each.time for each in kept)
    packed = pack_records(codec, b"".join(bytes(each.raw) for each in kept))
    return message(kept[-1].offset, attributes, time, None, packed)


def _places(data: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(data):
        found.append(at)
        length = _HEAD.unpack_from(data, at)[1]
        if not _HEAD.size - PREFIX_BYTES <= length <= len(data) - at - PREFIX_BYTES:
            raise IndexError(f"message at byte {at}: {length} bytes, {len(data) - at - PREFIX_BYTES} are left")
        at += PREFIX_BYTES + length
    return found


def _read(data: memoryview, at: int, shift: int) -> Message:
    offset, length, _, magic, _ = _HEAD.unpack_from(data, at)
    body = at + _HEAD.size
    time = _NO_TIME
    if magic == FORMAT_1:
        (time,) = _TIME.unpack_from(data, body)
        body += _TIME.size
    key, body = _bytes(data, body)
    tombstone = _LENGTH.unpack_from(data, body)[0] < 0
    raw = data[at : at + PREFIX_BYTES + length]
    return Message(offset + shift, time, None if key is None else bytes(key), tombstone, raw)


def _value(data: memoryview) -> memoryview:
    _, body = _bytes(data, _HEAD.size + _TIME.size)
    value, _ = _bytes(data, body)
    return memoryview(b"") if value is None else value


def _bytes(data: memoryview, at: int) -> tuple[memoryview | None, int]:
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    return (None, at) if length < 0 else (data[at : at + length], at + length)
