"""
Records of a commit log, one after the other, as files, replication and answers to consumers have them.

    size 4, magic 4, CRC of the body 4, queue 4, flag 4, offset in the queue 8, offset in the log 8, flags 4,
    born: time 8 and host 8 or 20, stored: time 8 and host 8 or 20, times consumed again 4, transaction 8,
    body: 4 and so many, topic: 1 and so many, properties: 2 and so many

A file ends with a blank that has a magic of its own. Files are made ahead, as zeros; what a truncation leaves
behind the end looks like any other record. The number of an epoch is in no record.

Source:  MessageDecoder.java and MessageExtEncoder.java; CommitLog.checkMessageAndReturnSize, 5.3.3 and 5.5.0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HEAD: Final = struct.Struct(">iIIiiqqi")
_BEGINNING: Final = struct.Struct(">iI")  # size and magic
_INT: Final = struct.Struct(">i")
_MAGIC: Final = 0xDAA320A7
_MAGIC_LONG_TOPIC: Final = 0xDAA320AB
# What ends a file (BLANK_MAGIC_CODE).
_BLANK: Final = 0xCBD43194
_BORN_V6: Final = 1 << 4
_STORED_V6: Final = 1 << 5
_HOST: Final = 8
_HOST_V6: Final = 20
_CRC_MASK: Final = 0x7FFFFFFF
BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    A record.

    Attributes:
        at: the offset of its first byte in what was read.
        size: in bytes.
        position: the offset of its first byte in the log, as it says itself.
    """

    at: int
    size: int
    position: int
    topic: str
    queue: int
    queue_offset: int
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """
    What is no record although bytes are there.

    Attributes:
        size: how many bytes it says that it has; 0 if it does not say, so that nothing after it can be read.
    """

    at: int
    why: str
    size: int = 0


def entries(data: bytes, *, checked: bool = True) -> Iterator[Entry | Damage]:
    """
    Yield records from the first byte on, until there are no more, the last is cut, or nothing can be made of one.

    Args:
        checked: whether each body is compared with its checksum.
    """
    at = 0
    while at + _BEGINNING.size <= len(data):
        size, magic = _BEGINNING.unpack_from(data, at)
        if magic == _BLANK or size == 0:
            return
        if magic not in (_MAGIC, _MAGIC_LONG_TOPIC) or not _HEAD.size < size <= BYTES_MAX:
            yield Damage(at=at, why=f"size {size}, magic {magic:08x}; expected a record")
            return
        if at + size > len(data):
            return
        yield _entry(data, at, size, magic, checked)
        at += size


def begins_record(data: bytes) -> bool:
    """Return whether these bytes may be the beginning of a record, of which the rest is still to come."""
    if len(data) < _BEGINNING.size:
        return bool(data)
    size, magic = _BEGINNING.unpack_from(data)
    return magic in (_MAGIC, _MAGIC_LONG_TOPIC) and len(data) < size <= BYTES_MAX


def blank_at(data: bytes, at: int) -> int:
    """Return the size of the blank that ends a file there, 0 if there is none."""
    size, magic = _BEGINNING.unpack_from(data, at) if len(data) - at >= _BEGINNING.size else (0, 0)
    return max(0, size) if magic == _BLANK else 0


def _entry(data: bytes, at: int, size: int, magic: int, checked: bool) -> Entry | Damage:
    _, _, crc, queue, _, queue_offset, position, flags = _HEAD.unpack_from(data, at)
    try:
        place = at + _HEAD.size + 8 + (_HOST_V6 if flags & _BORN_V6 else _HOST)
        place += 8 + (_HOST_V6 if flags & _STORED_V6 else _HOST) + 4 + 8
        (length,) = _INT.unpack_from(data, place)
        place += 4
        value = data[place : place + length]
        place += length
        topic_size = 1 if magic == _MAGIC else 2
        topic_length = int.from_bytes(data[place : place + topic_size])
        topic = data[place + topic_size : place + topic_size + topic_length]
        place += topic_size + topic_length
        whole = place + 2 + int.from_bytes(data[place : place + 2])
    except struct.error as error:
        return Damage(at=at, why=f"record of {size} bytes: {error}", size=size)
    if length < 0 or whole != at + size:
        return Damage(at=at, why=f"record of {size} bytes whose parts have {whole - at}", size=size)
    if checked and zlib.crc32(value) & _CRC_MASK != crc:
        return Damage(at=at, why=f"record of {size} bytes: its body has another checksum than it says", size=size)
    return Entry(
        at=at,
        size=size,
        position=position,
        topic=topic.decode("utf-8", errors="replace"),
        queue=queue,
        queue_offset=queue_offset,
        value=value,
    )
