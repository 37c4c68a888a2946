"""
Walk the record batches of format v2 in a segment's bytes: headers and checksums. Records are not read here.

The walk stops where the bytes are not a sound batch, because what follows could be anything:
    fewer bytes than a header, or zeros to the end of the file    a torn or zero-filled tail
    a length that is zero, below 49, or beyond the file           torn, or no batch
    magic other than 2                                            message_set.py reads v0 and v1
    CRC-32C that differs from that of bytes 21 to the end         damaged
The walk goes on after a base offset that does not rise, or a last offset before the base. The bytes of such a
batch are sound and its place is wrong: its `problem` says so, and soundness.py judges the order.

The checksum does not cover the base offset and the leader epoch: a leader writes them into a producer's batch.

Source:  Apache Kafka, clients/.../record/DefaultRecordBatch.java.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import crc32c

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, base and max timestamp,
# producer id, producer epoch, base sequence, record count
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
# The length field counts the bytes after this position: base offset and length come before.
LENGTH_END: Final = 12
CRC_FROM: Final = 21
BATCH_LENGTH_MIN: Final = HEADER.size - LENGTH_END

_MAGIC_AT: Final = 16
_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """
    One batch's header, and the batch's place in its file.

    Attributes:
        last_offset: The batch's last offset, inclusive.
        base_timestamp: In milliseconds since 1970.
        max_timestamp: In milliseconds since 1970.
        position: The batch's first byte in the file.
        size: In bytes.
        payload: The bytes of the records, compressed if the batch has a codec.
        problem: How the batch breaks the order of offsets; "" if it does not.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    record_count: int
    position: int
    size: int
    payload: bytes
    problem: str

    @property
    def codec_id(self) -> int:
        """The records' compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _CODEC_MASK

    @property
    def log_append_time(self) -> bool:
        """Whether the broker set the time (LogAppendTime): max_timestamp is then the time of every record."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether the batch is a transaction marker (commit, abort) that the broker wrote and no client reads."""
        return bool(self.attributes & _CONTROL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """
    The result of a walk: sound batches in file order, and why it stopped.

    Attributes:
        sound_bytes: The position at which the walk stopped.
        stopped: Why it stopped; "" if it reached the end of the bytes.
        short: True if the bytes left may be the beginning of a batch that is being written, or space for one.
    """

    headers: tuple[Header, ...]
    sound_bytes: int
    stopped: str
    short: bool = False


def walk(data: bytes, *, next_offset: int = 0) -> Walk:
    """
    Return the sound batches of the bytes in file order, up to the first position that has none.

    Accepts any bytes and raises nothing.

    Args:
        next_offset: The least base offset that the first batch may have: the segment's own, or the end of the
            batch before it.
    """
    headers: list[Header] = []
    position = 0
    while position < len(data):
        stopped = _stop(data, position)
        if stopped:
            return Walk(
                headers=tuple(headers), sound_bytes=position, stopped=stopped, short=is_short(data, position)
            )
        header = _header(data, position, next_offset)
        headers.append(header)
        # Each batch must begin at or after the furthest end before it, also after a batch that goes back.
        next_offset = max(next_offset, header.last_offset + 1)
        position += header.size
    return Walk(headers=tuple(headers), sound_bytes=position, stopped="")


def is_short(data: bytes, position: int) -> bool:
    """Return True if the bytes from the position on are all zero, or end inside the batch that begins there."""
    left = len(data) - position
    if left < LENGTH_END or data.count(0, position) == left:
        return True
    (length,) = struct.unpack_from(">i", data, position + 8)
    return bool(length > left - LENGTH_END)


def _stop(data: bytes, position: int) -> str:
    """Return why no sound batch begins here; "" if one does."""
    left = len(data) - position
    where = f"position {position}"
    if not any(data[position : position + HEADER.size]) and data.count(0, position) == left:
        return f"{where}: {left} bytes, all zero, to the end of the file; expected a batch or the end"
    if left < LENGTH_END:
        return f"{where}: torn, {left} bytes are left; expected at least {HEADER.size} or none"
    (length,) = struct.unpack_from(">i", data, position + 8)
    # The magic byte has the same position in every format, and old messages may be shorter than a v2 header.
    if left > _MAGIC_AT and data[position + _MAGIC_AT] in {0, 1} and 0 < length <= left - LENGTH_END:
        magic = data[position + _MAGIC_AT]
        return f"{where}: a message of format v{magic} (magic {magic}); expected a batch, magic 2"
    if length < BATCH_LENGTH_MIN:
        return f"{where}: batch length is {length}; expected at least {BATCH_LENGTH_MIN}"
    if length > left - LENGTH_END:
        return f"{where}: torn, batch length is {length} and {left - LENGTH_END} bytes are left"
    magic = data[position + _MAGIC_AT]
    if magic != 2:
        return f"{where}: magic is {magic}; expected 2"
    (stored,) = struct.unpack_from(">I", data, position + 17)
    computed = crc32c.crc32c(memoryview(data)[position + CRC_FROM : position + LENGTH_END + length])
    if stored != computed:
        return f"{where}: batch's CRC-32C is {stored:#010x}, its bytes have {computed:#010x}"
    return ""


def _header(data: bytes, position: int, next_offset: int) -> Header:
    base, length, epoch, magic, crc, attributes, delta, base_time, max_time, _, _, _, count = HEADER.unpack_from(
        data, position
    )
    problem = ""
    if base < next_offset:
        problem = f"base offset is {base}; expected {next_offset} or later, the end of the batch before it"
    elif delta < 0:
        problem = f"last offset delta is {delta}; expected 0 or more"
    return Header(
        base_offset=base,
        last_offset=base + delta,
        leader_epoch=epoch,
        magic=magic,
        crc=crc,
        attributes=attributes,
        base_timestamp=base_time,
        max_timestamp=max_time,
        record_count=count,
        position=position,
        size=LENGTH_END + length,
        payload=data[position + HEADER.size : position + LENGTH_END + length],
        problem=problem,
    )
