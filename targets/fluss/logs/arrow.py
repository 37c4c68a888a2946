"""
Read what an Arrow IPC message claims about one column of text, before any of it is opened.

The bytes may be anything, and a library that decodes them allocates what a length claims: a buffer's claimed size
when opened is eight bytes. So the metadata, a flatbuffer, is read here first, with each position looked at before
it is used, and nothing is passed on that would open to more than LOG_BATCH_OPENED_BYTES_MAX.

    0xffffffff, metadata's size 4, metadata, body
    Message      slots: version, header's type, header (a RecordBatch), body's length, a user's own metadata
    RecordBatch  slots: rows, field nodes, buffers, compression, counts of variadic buffers
    FieldNode    rows 8, nulls 8              Buffer  offset in the body 8, length 8
    BodyCompression  slots: codec (0 lz4, 1 zstd), method

A column of text has one node and three buffers: validity, offsets, data. A compressed buffer begins with its
length when opened, 8 bytes; -1 if it is stored plain.

A flatbuffer's table begins with the distance back to its vtable, which has its own size, the table's size, and the
place of each slot in the table, 0 if it is absent.

Source:  Apache Arrow, format/Message.fbs, format/Columnar.rst; FlatBuffers, Internals.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from harness import limits

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_PREFIX_BYTES: Final = 8
_RECORD_BATCH: Final = 3
# MetadataVersion V5. Libraries look for a codec of V4 in the message's own metadata too, past what is read here.
_VERSION: Final = 4
_PAIR_BYTES: Final = 16
_BUFFERS: Final = 3
_CODECS: Final = {0: "lz4", 1: "zstd"}
_OPENED_LENGTH: Final = struct.Struct("<q")


class ArrowError(ValueError):
    """The bytes are no Arrow message with one column of text that may be opened; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """
    What a message claims.

    Attributes:
        codec: How the buffers are compressed; `none` if they are not.
        data: The [first, end) bytes of the data buffer in the message.
    """

    rows: int
    codec: str
    data: tuple[int, int]


def text_column(message: memoryview) -> TextColumn:
    """
    Return what a message claims about its one column of text.

    Raises:
        ArrowError: It has no such column, a length lies, or it would open to more than this reader takes.
    """
    if bytes(message[:4]) != _CONTINUATION or len(message) < _PREFIX_BYTES:
        raise ArrowError("no Arrow message; expected 0xffffffff at its beginning")
    size = int.from_bytes(message[4:_PREFIX_BYTES], "little", signed=True)
    body_at = _PREFIX_BYTES + size
    if not 0 < size <= len(message) - _PREFIX_BYTES:
        raise ArrowError(f"metadata of {size} bytes; expected 1 to {len(message) - _PREFIX_BYTES}")
    metadata = message[_PREFIX_BYTES:body_at]
    table = _Table(metadata, _read("<I", metadata, 0))
    kind, length = table.number(1, "<B"), table.number(3, "<q")
    version = table.number(0, "<h")
    if version != _VERSION or table.place(4):
        raise ArrowError(f"metadata of version {version}; expected {_VERSION}, and no metadata of a user's own")
    if kind != _RECORD_BATCH:
        raise ArrowError(f"a message of kind {kind}; expected {_RECORD_BATCH}, a record batch")
    if length != len(message) - body_at:
        raise ArrowError(f"body length is {length}; expected {len(message) - body_at}, the bytes left")
    batch = table.table(2)
    if batch is None:
        raise ArrowError("no record batch in the message")
    return _column(batch, message[body_at:], body_at)


def _column(batch: _Table, body: memoryview, body_at: int) -> TextColumn:
    rows = batch.number(0, "<q")
    nodes, buffers = batch.pairs(1, 1), batch.pairs(2, _BUFFERS)
    if nodes is None or buffers is None or batch.place(4):
        raise ArrowError(f"not one column of text; expected one node and {_BUFFERS} buffers")
    if nodes[0][0] != rows:
        raise ArrowError(f"a column of {nodes[0][0]} rows in a batch of {rows}")
    compression = batch.table(3)
    codec = "none" if compression is None else _codec(compression)
    opened = 0
    for offset, length in buffers:
        if offset < 0 or not 0 <= length <= len(body) - offset:
            raise ArrowError(f"a buffer of {length} bytes at {offset}; expected one in the body's {len(body)}")
        opened += length if compression is None else _opened(body[offset : offset + length])
    if opened > limits.LOG_BATCH_OPENED_BYTES_MAX:
        limit = limits.LOG_BATCH_OPENED_BYTES_MAX
        raise ArrowError(f"its buffers open to {opened} bytes; this reader takes at most {limit}")
    offset, length = buffers[-1]
    return TextColumn(rows=rows, codec=codec, data=(body_at + offset, body_at + offset + length))


def _codec(compression: _Table) -> str:
    codec, method = compression.number(0, "<b"), compression.number(1, "<b")
    if codec not in _CODECS or method:
        raise ArrowError(f"compression {codec} by method {method}; expected {sorted(_CODECS)} by method 0")
    return _CODECS[codec]


def _opened(buffer: memoryview) -> int:
    """Return how many bytes a compressed buffer claims to open to."""
    if not buffer:
        return 0
    claimed: int = _read(_OPENED_LENGTH.format, buffer, 0)
    if claimed < -1:
        raise ArrowError(f"a buffer that opens to {claimed} bytes; expected -1 or more")
    return len(buffer) - _OPENED_LENGTH.size if claimed == -1 else claimed


class _Table:
    """A table of a flatbuffer; a slot that is absent has its default, which is 0 for all that is read here."""

    def __init__(self, flat: memoryview, at: int) -> None:
        self._flat, self._at = flat, at
        self._slots_at = at - _read("<i", flat, at)
        self._slots_bytes = _read("<H", flat, self._slots_at)

    def place(self, slot: int) -> int:
        """Return where a slot's value is, 0 if it is absent."""
        entry = 4 + 2 * slot
        if entry + 2 > self._slots_bytes:
            return 0
        offset: int = _read("<H", self._flat, self._slots_at + entry)
        return self._at + offset if offset else 0

    def number(self, slot: int, form: str) -> int:
        """Return a slot's number."""
        place = self.place(slot)
        return int(_read(form, self._flat, place)) if place else 0

    def table(self, slot: int) -> _Table | None:
        """Return the table that a slot leads to, None if it is absent."""
        place = self.place(slot)
        return _Table(self._flat, place + _read("<I", self._flat, place)) if place else None

    def pairs(self, slot: int, count: int) -> list[tuple[int, int]] | None:
        """Return a vector of pairs of numbers, None if it has not so many: it may claim any number."""
        place = self.place(slot)
        if not place:
            return None
        first = place + _read("<I", self._flat, place)
        if _read("<I", self._flat, first) != count:
            return None
        at = first + 4
        return [
            (_read("<q", self._flat, each), _read("<q", self._flat, each + 8))
            for each in range(at, at + count * _PAIR_BYTES, _PAIR_BYTES)
        ]


def _read(form: str, data: memoryview, at: int) -> Any:
    """Return one number; a position outside is refused, also one before the beginning."""
    if not 0 <= at <= len(data) - struct.calcsize(form):
        raise ArrowError(f"a number at byte {at} of {len(data)}; expected one inside")
    return struct.unpack_from(form, data, at)[0]
