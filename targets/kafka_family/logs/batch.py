"""
Walk the record batches of format v2 in a segment's bytes: headers and checksums. Records are not read here.

The walk stops where the bytes are not a sound batch, because what follows could be anything:
    fewer bytes than a header, or zeros to the end of the file    a torn or zero-filled tail
    a length that is zero, below 49, or beyond the file           torn, or no batch
    a length above LOG_BATCH_BYTES_MAX                            more than this reader takes into memory
    magic other than 2                                            message_set.py reads v0 and v1
    CRC-32C that differs from that of bytes 21 to the end         damaged
The walk goes on behind a damaged batch if a sound one follows it there, with the offset after its last, or if the
file ends with it: its header then says what is damaged. It also goes on after a base offset that does not rise, or
a last offset before the base. The bytes of such a batch are sound and its place is wrong: its `problem` says so,
and soundness.py judges the order.

The checksum does not cover the base offset and the leader epoch: a leader writes them into a producer's batch.

Source:  Apache Kafka, clients/.../record/DefaultRecordBatch.java.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import crc32c

from harness import limits
from harness.logs.source import BytesSource, Source
from harness.logs.walking import Stop, walked

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
        short: As of a Stop.
    """

    headers: tuple[Header, ...]
    sound_bytes: int
    stopped: str
    short: bool = False

    @classmethod
    def of(cls, found: Iterable[Header | Stop], size: int) -> Walk:
        """Collect what a walk over `size` bytes yields."""
        headers: list[Header] = []
        for each in found:
            if isinstance(each, Stop):
                return cls(headers=tuple(headers), sound_bytes=each.position, stopped=each.text, short=each.short)
            headers.append(each)
        return cls(headers=tuple(headers), sound_bytes=size, stopped="")


def walk(data: bytes, *, next_offset: int = 0) -> Walk:
    """
    Return the sound batches of the bytes in file order, up to the first position that has none.

    Accepts any bytes and raises nothing.

    Args:
        next_offset: The least base offset that the first batch may have: the segment's own, or the end of the
            batch before it.
    """
    return Walk.of(headers(BytesSource(data), next_offset), len(data))


def headers(source: Source, next_offset: int) -> Iterator[Header | Stop]:
    """Yield the sound batches in file order, and a Stop where there is none; raises OSError as the source does."""
    return walked(source, header_at, next_offset)


def header_at(source: Source, position: int, next_offset: int) -> Header | Stop:
    """Return the header of the sound batch that begins at the position, or why none does."""
    head = source.at(position, HEADER.size)
    length = _length(head)
    text = _refusal(source, position, head)
    data, damaged = b"", None
    if not text:
        data = source.at(position, LENGTH_END + length)
        text = _refusal_of_whole(data, length)
        if text and len(data) == LENGTH_END + length:
            claimed = _header(data, position, next_offset)
            damaged = claimed.base_offset, claimed.last_offset + 1, claimed.size
    if text:
        short = is_short(source, position)
        return Stop(position=position, text=f"position {position}: {text}", short=short, damaged=damaged)
    return _header(data, position, next_offset)


def is_short(source: Source, position: int) -> bool:
    """Return True if the bytes from the position on are all zero, or end inside the batch that begins there."""
    head = source.at(position, LENGTH_END)
    if len(head) < LENGTH_END or _length(head) > source.size - position - LENGTH_END:
        return True
    return source.zeros_from(position)


def _length(head: bytes) -> int:
    """Return the length field of a batch, if the bytes reach so far."""
    return int.from_bytes(head[8:LENGTH_END], signed=True)


def _refusal(source: Source, position: int, head: bytes) -> str:
    """Return why these bytes of a file begin no batch; "" if they may begin one."""
    # A file that was cut meanwhile has fewer bytes than its length says.
    left = source.size - position if len(head) == HEADER.size else len(head)
    if not any(head) and source.zeros_from(position):
        return f"{left} bytes, all zero, to the end of the file; expected a batch or the end"
    if left < LENGTH_END:
        return f"torn, {left} bytes are left; expected at least {HEADER.size} or none"
    length = _length(head)
    # The magic byte has the same position in every format, and old messages may be shorter than a v2 header.
    if left > _MAGIC_AT and head[_MAGIC_AT] in {0, 1} and 0 < length <= left - LENGTH_END:
        magic = head[_MAGIC_AT]
        return f"a message of format v{magic} (magic {magic}); expected a batch, magic 2"
    if length < BATCH_LENGTH_MIN:
        return f"batch length is {length}; expected at least {BATCH_LENGTH_MIN}"
    if length > left - LENGTH_END:
        return f"torn, batch length is {length} and {left - LENGTH_END} bytes are left"
    if head[_MAGIC_AT] != 2:
        return f"magic is {head[_MAGIC_AT]}; expected 2"
    if length > limits.LOG_BATCH_BYTES_MAX:
        return f"batch length is {length}; this reader takes at most {limits.LOG_BATCH_BYTES_MAX}"
    return ""


def _refusal_of_whole(data: bytes, length: int) -> str:
    """Return why the bytes are no sound batch of this length."""
    if len(data) < LENGTH_END + length:
        return f"torn, batch length is {length} and {len(data) - LENGTH_END} bytes are left"
    (stored,) = struct.unpack_from(">I", data, 17)
    computed = crc32c.crc32c(memoryview(data)[CRC_FROM:])
    if stored != computed:
        return f"batch's CRC-32C is {stored:#010x}, its bytes have {computed:#010x}"
    return ""


def _header(data: bytes, position: int, next_offset: int) -> Header:
    base, _, epoch, magic, crc, attributes, delta, base_time, max_time, _, _, _, count = HEADER.unpack_from(data)
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
        size=len(data),
        payload=data[HEADER.size :],
        problem=problem,
    )
