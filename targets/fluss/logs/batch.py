"""
Walk the record batches of a segment: headers and checksums. Records are not read here (records.py).

All numbers are little endian. Format 1 (magic) has the leader epoch, format 0 has none; release 0.9.1 writes
format 0. The length counts the bytes after itself, the checksum covers those after itself.

    base offset 8, length 4, magic 1, commit time 8, [leader epoch 4], CRC-32C 4,
    schema id 2, attributes 1, last offset delta 4, writer id 8, batch sequence 4, record count 4, records

The checksum does not cover what a leader writes into a writer's batch: base offset, commit time and leader epoch;
nor length and magic. The walk (harness/logs/walking.py) stops where the bytes are no sound batch:
    fewer bytes than a header, or zeros to the end of the file    a torn or zero-filled tail
    a length below that of a header, or beyond the file           torn, or no batch
    a length above LOG_BATCH_BYTES_MAX                            more than this reader takes into memory
    magic other than 0 and 1                                      a release that this reader does not know
    CRC-32C that differs                                          damaged
A base offset that does not rise, or a last offset before the base, is a sound batch in a wrong place: its
`problem` says so, and the walk goes on.

Source:  Apache Fluss 0.9.1, fluss-common/.../record/DefaultLogRecordBatch.java, LogRecordBatchFormat.java. Later
         sources number anew: there magic 1 has statistics, and magic 2 the epoch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import crc32c

from harness import limits
from harness.logs.record import NO_EPOCH
from harness.logs.source import Source
from harness.logs.walking import Stop, walked

# Base offset, length, magic, commit time.
_HEAD: Final = struct.Struct("<qibq")
_EPOCH: Final = struct.Struct("<i")
_CRC: Final = struct.Struct("<I")
# Schema id, attributes, last offset delta, writer id, batch sequence, record count.
_COVERED: Final = struct.Struct("<hbiqii")
_LENGTH_END: Final = 12
_APPEND_ONLY: Final = 0x01
# Where the checksum is, by magic.
_CRC_AT: Final = {0: _HEAD.size, 1: _HEAD.size + _EPOCH.size}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """
    One sound batch: its header, its place in the file, and its bytes.

    Attributes:
        last_offset: Inclusive.
        leader_epoch: -1 if the format has none.
        append_only: Else one byte of change type for each record stands before the records.
        position: The batch's first byte in the file.
        size: In bytes.
        covered: The bytes that the checksum covers: equal on each replica that has the batch.
        problem: How the batch breaks the order of offsets; "" if it does not.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    crc: int
    append_only: bool
    record_count: int
    position: int
    size: int
    covered: bytes
    problem: str

    @property
    def payload(self) -> memoryview:
        """The records' bytes, with their change types."""
        return memoryview(self.covered)[_COVERED.size :]

    @property
    def payload_at(self) -> int:
        """The position of the records' first byte in the file."""
        return self.position + self.size - len(self.covered) + _COVERED.size


def headers(source: Source, next_offset: int) -> Iterator[Header | Stop]:
    """
    Yield the sound batches in file order, and a Stop where there is none.

    Args:
        next_offset: The least base offset that the first batch may have.

    Raises:
        OSError: The source cannot be read.
    """
    return walked(source, _header_at, next_offset)


def _header_at(source: Source, position: int, next_offset: int) -> Header | Stop:
    """Return the sound batch that begins at the position, or why none does."""
    head = source.at(position, _LENGTH_END + 1)
    length = int.from_bytes(head[8:_LENGTH_END], "little", signed=True)
    text = _refusal(source, position, head, length)
    damaged = None
    if not text:
        data = source.at(position, _LENGTH_END + length)
        # A file that was cut meanwhile has fewer bytes than its size said.
        if len(data) == _LENGTH_END + length:
            found, computed = _header(data, position, next_offset)
            if found.crc == computed:
                return found
            text = f"batch's CRC-32C is {found.crc:#010x}, its bytes have {computed:#010x}"
            damaged = found.base_offset, found.last_offset + 1, found.size
        else:
            text = _torn(length, len(data))
    left = source.size - position
    short = left < _LENGTH_END or length > left - _LENGTH_END or source.zeros_from(position)
    return Stop(position=position, text=f"position {position}: {text}", short=short, damaged=damaged)


def _refusal(source: Source, position: int, head: bytes, length: int) -> str:
    """Return why these bytes of a file begin no batch; "" if they may begin one."""
    left = source.size - position if len(head) > _LENGTH_END else len(head)
    if not any(head) and source.zeros_from(position):
        return f"{left} bytes, all zero, to the end of the file; expected a batch or the end"
    least = _CRC_AT[0] + _CRC.size + _COVERED.size
    if left <= _LENGTH_END:
        return f"torn, {left} bytes are left; expected at least {least} or none"
    magic = int.from_bytes(head[_LENGTH_END:], signed=True)
    if magic in _CRC_AT:
        least = _CRC_AT[magic] + _CRC.size + _COVERED.size
    if length < least - _LENGTH_END:
        return f"batch length is {length}; expected at least {least - _LENGTH_END}"
    if length > left - _LENGTH_END:
        return _torn(length, left)
    if magic not in _CRC_AT:
        return f"magic is {magic}; expected 0 or 1"
    if length > limits.LOG_BATCH_BYTES_MAX:
        return f"batch length is {length}; this reader takes at most {limits.LOG_BATCH_BYTES_MAX}"
    return ""


def _torn(length: int, left: int) -> str:
    return f"torn, batch length is {length} and {left - _LENGTH_END} bytes are left"


def _header(data: bytes, position: int, next_offset: int) -> tuple[Header, int]:
    """Return what a whole batch's header says, and the checksum that its bytes have."""
    base, _, magic, _ = _HEAD.unpack_from(data)
    crc_at = _CRC_AT[magic]
    (crc,) = _CRC.unpack_from(data, crc_at)
    covered = data[crc_at + _CRC.size :]
    _, attributes, delta, _, _, count = _COVERED.unpack_from(covered)
    problem = ""
    if base < next_offset:
        problem = f"base offset is {base}; expected {next_offset} or later, the end of the batch before it"
    elif delta < 0:
        problem = f"last offset delta is {delta}; expected 0 or more"
    header = Header(
        base_offset=base,
        last_offset=base + delta,
        leader_epoch=_EPOCH.unpack_from(data, _HEAD.size)[0] if magic else NO_EPOCH,
        magic=magic,
        crc=crc,
        append_only=bool(attributes & _APPEND_ONLY),
        record_count=count,
        position=position,
        size=len(data),
        covered=covered,
        problem=problem,
    )
    return header, crc32c.crc32c(covered)
