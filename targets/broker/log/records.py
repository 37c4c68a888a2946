"""
The records inside a batch, walked without copying any: do they agree with each other and with the batch's header?

A record is a length, attributes, a time delta, an offset delta, a key, a value and headers. All numbers are zigzag
varints: the bits of `2 * n`, or of `-2 * n - 1` for a negative number, seven to a byte, lowest first.
One loop reads the usual record: lengths of at most two bytes, an offset of at most three, a key of fewer than 64
bytes or none. It calls a function for headers only, since it runs for every record that the broker takes. A record
that looks different is read again by the class for any record, which takes some times as long.
Source:  Kafka, DefaultRecord.readFrom and DefaultRecordBatch.RecordIterator.
"""

from __future__ import annotations

from typing import Final

from targets.broker.core.messages import Payload

# A length, attributes, a time, an offset, no key, no value, no headers: one byte each.
RECORD_BYTES_MIN: Final = 7
# The same for a header: the lengths of its name and of its value.
_HEADER_BYTES_MIN: Final = 2
_VARINT_BYTES_MAX: Final = 10


class HeavyError(Exception):
    """The bytes ask for more work than the caller allows at once; nothing is wrong with them."""


class RecordsError(ValueError):
    """The records contradict themselves or the batch's header; the text says where and how."""


def check_records(data: Payload, count: int, headers_max: int | None = None) -> int:
    """
    Check that the bytes are `count` records, with offset deltas from 0 on, and nothing else.

    Args:
        data: all records of a batch, uncompressed.
        headers_max: how many headers the records may have, None for any number.

    Returns:
        How many headers the records have.

    Raises:
        RecordsError: they are not.
        HeavyError: they have more headers than headers_max.
    """
    if count * RECORD_BYTES_MIN > len(data):
        raise RecordsError(f"{count} records in {len(data)} bytes; expected at least {RECORD_BYTES_MIN} for each")
    other = _AnyRecord(data, headers_max)
    try:
        end = _walk(data, count, other)
    except IndexError:
        raise RecordsError(f"{len(data)} bytes end within a record; expected {count} whole ones") from None
    if end != len(data):
        raise RecordsError(f"{count} records end at byte {end} of {len(data)}; expected nothing after them")
    return other.headers


def _walk(data: Payload, count: int, other: _AnyRecord) -> int:
    """Return where the last record ends; IndexError if the bytes end before."""
    at = 0
    for twice in range(0, 2 * count, 2):  # the offset delta, as its varint has it
        byte = data[at]
        if byte < 128:
            length, body = byte, at + 1
        else:
            more = data[at + 1]
            if more > 127:
                at = other.end_of(at, twice)
                continue
            length, body = byte - 128 + (more << 7), at + 2
        look = body + 1
        while data[look] > 127:  # the time
            look += 1
            if look > body + _VARINT_BYTES_MAX:
                other.end_of(at, twice)
        byte = data[look + 1]
        look += 2
        if byte > 127:  # the offset delta
            more = data[look]
            byte += (more << 7) - 128
            look += 1
            if more > 127:
                more = data[look]
                byte += (more << 14) - (128 << 7)
                look += 1
                if more > 127:
                    byte, look = other.number(look - 3)
                    byte += byte
        if byte != twice:
            raise _wrong_delta(at, twice, byte)
        byte = data[look]
        if byte != 1:  # the key's length; 1 is -1, no key
            if byte & 0x81:
                at = other.end_of(at, twice)
                continue
            look += byte >> 1
        byte = data[look + 1]
        look += 2
        if byte > 127:  # the value's length, 1 as for the key
            more = data[look]
            if more > 127:
                at = other.end_of(at, twice)
                continue
            byte += (more << 7) - 128
            look += 1
        look += byte >> 1
        look = other.after_headers(look, body + (length >> 1)) if data[look] else look + 1
        if (look - body) * 2 != length or (byte & 1 and byte != 1):
            at = other.end_of(at, twice)
            continue
        at = look
    return at


class _AnyRecord:
    """Reads one record, whatever its form."""

    def __init__(self, data: Payload, headers_max: int | None) -> None:
        self._data = data
        self._headers_max = headers_max
        self.headers = 0

    def end_of(self, at: int, twice: int) -> int:
        """Return where the record at that byte ends, which must have the offset delta `twice / 2`."""
        length, body = self.number(at)
        look = self.number(body + 1)[1]
        delta, look = self.number(look)
        if delta != twice >> 1:
            raise _wrong_delta(at, twice, delta << 1)
        look = self._after_bytes(look, "key")
        look = self._after_bytes(look, "value")
        look = self.after_headers(look, body + length)
        if look != body + length:
            raise RecordsError(f"record at byte {at}: {length} bytes, its fields {look - body}; expected as many")
        return look

    def after_headers(self, at: int, end: int) -> int:
        """Return where the headers end whose number stands at that byte; their record ends at `end`."""
        data = self._data
        count, look = self.number(at)
        if not 0 <= count * _HEADER_BYTES_MIN <= end - look:
            raise RecordsError(f"byte {at}: {count} headers in {end - look} bytes; expected 2 for each")
        self.headers += count
        if self._headers_max is not None and self.headers > self._headers_max:
            raise HeavyError(f"{self.headers} headers of records; {self._headers_max} allowed at once")
        for _ in range(count):
            byte = data[look]
            look = (
                look + 1 + (byte >> 1) if not byte & 0x81 else self._after_bytes(look, "header's name", null=False)
            )
            byte = data[look]
            look = look + 1 + (byte >> 1) if not byte & 0x81 else self._after_bytes(look, "header's value")
        return look

    def _after_bytes(self, at: int, what: str, *, null: bool = True) -> int:
        """Return where bytes with their length before them end; the length -1 means null."""
        length, at = self.number(at)
        if length >= 0:
            return at + length
        if length == -1 and null:
            return at
        raise RecordsError(f"byte {at}: a {what} of {length} bytes; expected at least {-1 if null else 0}")

    def number(self, at: int) -> tuple[int, int]:
        """Return a number and where it ends."""
        return number_at(self._data, at)


def number_at(data: Payload, at: int) -> tuple[int, int]:
    """
    Return the number at that byte and where it ends.

    Raises:
        IndexError: the bytes end within it.
        RecordsError: it is longer than any number.
    """
    byte = data[at]
    if byte < 128:
        return byte >> 1 ^ -(byte & 1), at + 1
    raw, shift = byte & 0x7F, 7
    for look in range(at + 1, at + _VARINT_BYTES_MAX):
        byte = data[look]
        raw |= (byte & 0x7F) << shift
        if byte < 128:
            return raw >> 1 ^ -(raw & 1), look + 1
        shift += 7
    raise RecordsError(f"byte {at}: a number of more than {_VARINT_BYTES_MAX} bytes")


def _wrong_delta(at: int, twice: int, raw: int) -> RecordsError:
    return RecordsError(f"record at byte {at}: offset delta {raw >> 1}; expected {twice >> 1}")
