"""
Read a batch's records (offset, time, key, value, headers), and compute the digest that compares replicas.

Lengths and deltas are zigzag varints; a length of -1 means null.

Source:  Apache Kafka, clients/.../record/DefaultRecord.java.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from harness import limits
from harness.keys import headers_of, key_bytes, text_in, value_bytes
from harness.logdir.batch import Header
from harness.logdir.codec import decompress

_VARINT_BYTES_MAX: Final = 10
_DIGEST_BYTES: Final = 8
# The timestamp of a record that has none.
NO_TIMESTAMP: Final = -1
# Source: Apache Kafka, ControlRecordType.java.
_MARKERS: Final = {0: "abort", 1: "commit"}
_NULL: Final = struct.pack(">i", -1)
_HEADERS_SHOWN: Final = 3


class RecordError(ValueError):
    """A batch's records contradict its header; the text names the record and the byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    One record as it is stored.

    Attributes:
        timestamp: In milliseconds since 1970; the batch's, if the broker set the time (LogAppendTime).
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()

    @property
    def digest(self) -> str:
        """16 hex digits over timestamp, key, value and headers; equal content has an equal digest."""
        spelled = [struct.pack(">q", self.timestamp)]
        for part in (self.key, self.value, *(part for header in self.headers for part in header)):
            # Lengths are hashed too, so that different records never produce the same bytes.
            spelled += (_NULL,) if part is None else (struct.pack(">i", len(part)), part)
        return blake2b(b"".join(spelled), digest_size=_DIGEST_BYTES).hexdigest()

    @property
    def value_text(self) -> str | None:
        """
        The value as text; as hex with the prefix `hex:` if it is not UTF-8.

        Of a tombstone it is the text that its client put into a header; None if null and without one.
        """
        return self.beginning(None)

    def beginning(self, characters_max: int | None) -> str | None:
        """Return the value's text, or only its beginning and `…` if it is longer than that; None: no limit."""
        value = text_in(self.headers) if self.value is None else self.value
        if value is None:
            return None
        if characters_max is None or len(value) <= characters_max:
            return _text(value)
        # A character has at most four bytes; the last one may be cut.
        cut = value[: 4 * characters_max]
        text = _text(cut[: len(cut) - _cut_bytes(cut)] if len(cut) < len(value) else cut)
        return text if len(text) <= characters_max else f"{text[:characters_max]}…"

    def about(self, characters_max: int) -> str:
        """Return all but the value, each part no longer than that: what differs if two values look alike."""
        headers = b", ".join(b"%b=%b" % (name, content or b"") for name, content in self.headers[:_HEADERS_SHOWN])
        size = "null" if self.value is None else f"{len(self.value)} bytes"
        return (
            f"key {_beginning(self.key, characters_max)}, timestamp {self.timestamp}, value {size}, "
            f"headers {_beginning(headers or None, characters_max)}, digest {self.digest}"
        )

    @property
    def marker_text(self) -> str:
        """The kind of a control batch's record, from its key: a commit, an abort, or another marker."""
        kind = int.from_bytes((self.key or b"")[2:4] or b"\xff")
        return f"{_MARKERS.get(kind, 'control')} marker"


def sent_digest(value: str, timestamp: int = NO_TIMESTAMP) -> str:
    """Return the digest of a record as a client sends it: this text with its key and timestamp."""
    headers = tuple((name.encode(), text) for name, text in headers_of(value))
    sent = Record(offset=0, timestamp=timestamp, key=key_bytes(value), value=value_bytes(value), headers=headers)
    return sent.digest


def _beginning(part: bytes | None, characters_max: int) -> str:
    if part is None:
        return "none"
    text = part[:characters_max].decode("utf-8", "backslashreplace")
    return f"{text!r}{'…' * (len(part) > characters_max)}"


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"hex:{value.hex()}"


def _cut_bytes(cut: bytes) -> int:
    """Return how many bytes at the end begin a character of UTF-8 that is not whole; 0 if none do."""
    try:
        cut.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(cut) - error.start if error.reason == "unexpected end of data" else 0
    return 0


def records_of(header: Header) -> tuple[Record, ...]:
    """
    Return a batch's records, by offset.

    Raises:
        CodecError: The records do not decompress.
        RecordError: The records are cut short, run over, or do not rise within the batch's offsets.
    """
    return tuple(iterate(header))


def iterate(header: Header) -> Iterator[Record]:
    """Yield a batch's records, by offset; raises as records_of, also after the first ones."""
    if header.record_count > limits.LOG_BATCH_RECORDS_MAX:
        limit = f"this reader takes at most {limits.LOG_BATCH_RECORDS_MAX}"
        raise RecordError(f"the batch has {header.record_count} records; {limit}")
    data = decompress(header.codec_id, header.payload)
    position, least = 0, header.base_offset
    for index in range(header.record_count):
        try:
            record, position = _record(header, data, position)
        except (IndexError, ValueError) as error:
            raise RecordError(
                f"record {index} of {header.record_count}, byte {position} of {len(data)}: {error}"
            ) from error
        if not least <= record.offset <= header.last_offset:
            raise RecordError(
                f"record {index} has offset {record.offset}; expected {least} to {header.last_offset}"
            )
        yield record
        least = record.offset + 1
    if position != len(data):
        raise RecordError(
            f"{len(data) - position} bytes follow the last of {header.record_count} records; expected none"
        )


def _record(header: Header, data: bytes, start: int) -> tuple[Record, int]:
    """Read one record: length, attributes, time and offset deltas, key, value, headers."""
    length, position = varint(data, start)
    end = position + length
    if length < 0 or end > len(data):
        raise ValueError(f"length is {length}; expected 0 to {len(data) - position}, the bytes left")
    time_delta, position = varint(data, position + 1)
    offset_delta, position = varint(data, position)
    key, position = _nullable(data, position)
    value, position = _nullable(data, position)
    count, position = varint(data, position)
    if count < 0:
        raise ValueError(f"header count is {count}; expected 0 or more")
    if count > limits.LOG_RECORD_HEADERS_MAX:
        raise ValueError(f"header count is {count}; this reader takes at most {limits.LOG_RECORD_HEADERS_MAX}")
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        name, position = _nullable(data, position)
        content, position = _nullable(data, position)
        headers.append((name or b"", content))
    if position != end:
        raise ValueError(f"fields end at byte {position}; its length says {end}")
    record = Record(
        offset=header.base_offset + offset_delta,
        timestamp=header.max_timestamp if header.log_append_time else header.base_timestamp + time_delta,
        key=key,
        value=value,
        headers=tuple(headers),
    )
    return record, position


def varint(data: bytes, position: int) -> tuple[int, int]:
    """
    Read a zigzag varint of at most 64 bits; return its value and the position after it.

    Raises:
        IndexError: The bytes end within it.
        ValueError: It is longer than 10 bytes.
    """
    first = data[position]
    if first < 0x80:
        # Fast path: nearly all deltas and lengths have one byte.
        return (first >> 1) ^ -(first & 1), position + 1
    raw = shift = 0
    for _ in range(_VARINT_BYTES_MAX):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    raise ValueError(f"a varint runs on past {_VARINT_BYTES_MAX} bytes")


def _nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Read bytes after their length; a negative length is null."""
    length, position = varint(data, position)
    if length < 0:
        return None, position
    if position + length > len(data):
        raise ValueError(f"a field's length is {length}; {len(data) - position} bytes are left")
    return data[position : position + length], position + length
