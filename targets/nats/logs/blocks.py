"""
Walk the records of a message block: a file `N.blk` of a stream's store, or of a Raft group's log.

All numbers are little endian. The length counts the whole record; its top bit says that there is a header.

    length 4, sequence 8, timestamp ns 8, subject length 2, subject, [header length 4, header], body, checksum 8

The sequence's bit 63 says erased (or skipped: no record was ever there), bit 62 that it is a tombstone: the
record of this sequence, in this block or another, is deleted. A tombstone also keeps the last sequence of a
store that lost its records, such as after a purge. The checksum, a HighwayHash-64, covers sequence, timestamp,
subject, header and body, and not lengths.

The walk verifies the checksums of many records at once (highway.py). What is no sound record is one Damage, and
the walk goes on behind it: where its length leads, if a sound record is there, or else at the next sound record
of one of the sequences that are due. No length is believed: nothing is read beyond the file, and a record of
more than RECORD_BYTES_MAX is damage.

Source:  nats-server 2.15.3, server/filestore.go, writeMsgRecordLocked, rebuildStateFromBufLocked, msgFromBufEx;
         the same in 2.12.1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from harness import limits
from harness.logs.source import Source
from targets.nats.logs.highway import highways

HEAD: Final = struct.Struct("<IQQH")
SUM_BYTES: Final = 8
LEAST_BYTES: Final = HEAD.size + SUM_BYTES
HEADER_BIT: Final = 1 << 31
ERASED_BIT: Final = 1 << 63
TOMBSTONE_BIT: Final = 1 << 62
# A client may send 1 MB by default (max_payload), and NATS warns above 8 MB; the checksum of that takes seconds.
RECORD_BYTES_MAX: Final = 9 * 1024 * 1024

_SEQUENCE: Final = struct.Struct("<Q")
_HEADER_LENGTH: Final = struct.Struct("<I")
_SEQUENCE_AT: Final = 4
_COVERED_TO: Final = 20
_FLAGS: Final = ERASED_BIT | TOMBSTONE_BIT
# What is verified together, and how many of the sequences that are due are looked for behind damage.
_TOGETHER_BYTES: Final = 8 * 1024 * 1024
_TOGETHER_RECORDS: Final = 20_000
_DUE: Final = 64
_TRIED_BYTES: Final = 256 * 1024
_TRIED_MAX: Final = 256


class Stored(NamedTuple):
    """
    One record; a tuple, because there are many.

    Attributes:
        sequence: Without its flags.
        position: Its first byte in the block, of a compressed one when opened.
        size: In bytes.
        body_at: Where in the block the body begins.
    """

    sequence: int
    erased: bool
    tombstone: bool
    timestamp_ns: int
    subject: bytes
    header: bytes
    body: bytes
    checksum: int
    position: int
    size: int
    body_at: int

    @property
    def is_live(self) -> bool:
        """Whether it holds a record, which a tombstone elsewhere may delete."""
        return not (self.erased or self.tombstone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """
    Bytes of a block that are no sound record.

    Attributes:
        text: What is wrong, with its position.
        position: The first of these bytes.
        end: The position after the last one.
        torn: They are the block's last ones, and may be the beginning of a record that is being written.
        claimed: The [first, end) of the sequences that they claim to be records of; None if they claim none.
    """

    text: str
    position: int
    end: int
    torn: bool = False
    claimed: tuple[int, int] | None = None


class Heading(NamedTuple):
    """What the first bytes of a record say; the sequence with its flags."""

    position: int
    size: int
    sequence: int
    timestamp_ns: int


def records(source: Source, key: bytes, last: int = 0) -> Iterator[Stored | Damage]:
    """
    Yield the records of a block in their order, and Damage where there is none.

    Args:
        key: The block's, from highway.block_key.
        last: The last sequence before the block.

    Raises:
        OSError: The source cannot be read.
    """
    position = 0
    while position < source.size:
        gathered, end, stop = _gathered(source, position)
        sound = _sound(key, gathered)
        at = 0
        while at < len(gathered):
            if sound[at]:
                yield gathered[at]
                last = max(last, gathered[at].sequence)
                at += 1
                continue
            after = next((each for each in range(at + 1, len(gathered)) if sound[each]), None)
            if after is None:
                break
            yield _wrong_sums(gathered[at:after])
            at = after
        if at < len(gathered):
            # Lengths led here from a record that is damaged, so that they may lie themselves.
            begin, stop = gathered[at].position, _wrong_sums(gathered[at:])
        elif stop is not None:
            begin = stop.position
        else:
            position = end
            continue
        position = _next_sound(source, key, begin, last)
        yield replace(stop, end=position, torn=stop.torn and position >= source.size)


def headings(source: Source) -> Iterator[Heading]:
    """
    Yield what the records' first bytes say, up to the first that cannot be a record; no checksum is verified.

    Raises:
        OSError: The source cannot be read.
    """
    position, size, unpack = 0, source.size, HEAD.unpack_from
    window, begin = b"", 0
    while position < size:
        at = position - begin
        if at + HEAD.size > len(window):
            window, begin, at = source.at(position, limits.LOG_READ_BYTES), position, 0
        if len(window) - at < HEAD.size:
            return
        length, sequence, timestamp_ns, _ = unpack(window, at)
        length &= HEADER_BIT - 1
        if not LEAST_BYTES <= length <= min(size - position, RECORD_BYTES_MAX):
            return
        yield Heading(position, length, sequence, timestamp_ns)
        position += length


def _gathered(source: Source, position: int) -> tuple[list[Stored], int, Damage | None]:
    """Return records from a position on, not verified; where they end; and why there is none then, if so."""
    found: list[Stored] = []
    first = position
    while position < source.size:
        if position - first >= _TOGETHER_BYTES or len(found) >= _TOGETHER_RECORDS:
            return found, position, None
        record = _record_at(source, position)
        if isinstance(record, Damage):
            return found, position, record
        found.append(record)
        position += record.size
    return found, position, None


def _record_at(source: Source, position: int) -> Stored | Damage:
    """Return the record at a position, its checksum not verified, or why there is none."""
    left = source.size - position
    head = source.at(position, HEAD.size)
    if len(head) < HEAD.size:
        text = f"{len(head)} bytes are left; expected a record of at least {LEAST_BYTES} or none"
        return _none(source, position, text, torn=True)
    length, sequence, timestamp_ns, subject_bytes = HEAD.unpack(head)
    has_header, size = bool(length & HEADER_BIT), length & (HEADER_BIT - 1)
    least = LEAST_BYTES + subject_bytes + (_HEADER_LENGTH.size if has_header else 0)
    if not any(head) and source.zeros_from(position):
        return _none(source, position, f"{left} bytes, all zero, to the end; expected a record or the end")
    if size < least:
        return _none(source, position, f"record length is {size}; expected at least {least}")
    if size > RECORD_BYTES_MAX:
        return _none(source, position, f"record length is {size}; expected at most {RECORD_BYTES_MAX}")
    if size > left:
        return _none(source, position, f"torn, record length is {size} and {left} bytes are left", torn=True)
    data = source.at(position, size)
    if len(data) < size:
        return _none(source, position, f"torn, record length is {size} and the file was cut", torn=True)
    at = HEAD.size + subject_bytes
    header = b""
    if has_header:
        (header_bytes,) = _HEADER_LENGTH.unpack_from(data, at)
        begin, at = at + _HEADER_LENGTH.size, at + _HEADER_LENGTH.size + header_bytes
        if at > size - SUM_BYTES:
            text = f"header length is {header_bytes}; expected at most {size - SUM_BYTES - begin}"
            return _none(source, position, text)
        header = data[begin:at]
    return Stored(
        sequence=sequence & ~_FLAGS,
        erased=bool(sequence & ERASED_BIT),
        tombstone=bool(sequence & TOMBSTONE_BIT),
        timestamp_ns=timestamp_ns,
        subject=data[HEAD.size : HEAD.size + subject_bytes],
        header=header,
        body=data[at : size - SUM_BYTES],
        checksum=_SEQUENCE.unpack_from(data, size - SUM_BYTES)[0],
        position=position,
        size=size,
        body_at=position + at,
    )


def _none(source: Source, position: int, text: str, *, torn: bool = False) -> Damage:
    return Damage(text=f"position {position}: {text}", position=position, end=source.size, torn=torn)


def _covered(record: Stored) -> bytes:
    """Return the bytes that the checksum covers."""
    flags = (ERASED_BIT if record.erased else 0) | (TOMBSTONE_BIT if record.tombstone else 0)
    numbers = struct.pack("<QQ", record.sequence | flags, record.timestamp_ns)
    return b"".join((numbers, record.subject, record.header, record.body))


def _sound(key: bytes, gathered: list[Stored]) -> list[bool]:
    """Return of each record whether its bytes have its checksum."""
    if not gathered:
        return []
    stored = np.fromiter((each.checksum for each in gathered), dtype=np.uint64, count=len(gathered))
    found: list[bool] = (highways(key, list(map(_covered, gathered))) == stored).tolist()
    return found


def _wrong_sums(wrong: list[Stored]) -> Damage:
    """Return the damage of records whose checksums differ."""
    first, final = wrong[0], wrong[-1]
    more = f", and {len(wrong) - 1} more up to position {final.position}" if len(wrong) > 1 else ""
    text = f"checksum of sequence {first.sequence} is {first.checksum:#018x}, which its bytes do not have{more}"
    claimed = None
    if all(each.sequence == first.sequence + number and each.is_live for number, each in enumerate(wrong)):
        claimed = first.sequence, final.sequence + 1
    return Damage(
        text=f"position {first.position}: {text}",
        position=first.position,
        end=final.position + final.size,
        claimed=claimed,
    )


def _next_sound(source: Source, key: bytes, damaged: int, last: int) -> int:
    """Return the position of the next sound record of a sequence that is due; the end if there is none."""
    window = source.at(damaged + 1, min(limits.LOG_READ_BYTES, source.size - damaged - 1))
    tried = tried_bytes = 0
    for due in range(last + 1, last + 1 + _DUE):
        spelled = _SEQUENCE.pack(due)
        at = window.find(spelled)
        while at >= 0:
            position = damaged + 1 + at - _SEQUENCE_AT
            found = _record_at(source, position) if position > damaged else None
            if isinstance(found, Stored) and found.sequence == due:
                tried, tried_bytes = tried + 1, tried_bytes + found.size
                if tried > _TRIED_MAX or (tried > 1 and tried_bytes > _TRIED_BYTES):
                    return source.size
                if all(_sound(key, [found])):
                    return position
            at = window.find(spelled, at + 1)
    return source.size
