"""
Messages in the wire format of Protocol Buffers: fields by number, read within bounds, and written.

It reads what a few messages of Fluss say, and no more: numbers, bytes, and messages inside. Nothing that a length
claims is allocated. A field that is there twice is there twice; a field of an unknown number is left out by who
asks for others.

Source:  the Protocol Buffers encoding guide; FlussApi.proto for the numbers of fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

Value = int | bytes
Fields = dict[int, list[Value]]

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_VARINT_BYTES_MAX: Final = 10
FIELDS_MAX: Final = 100_000


class Malformed(ValueError):
    """Bytes that are no message: cut short, a length beyond the end, an unknown kind or too many of fields."""


def fields(data: bytes) -> Fields:
    """
    Return the fields of a message by number, each with its values in order; numbers are unsigned.

    Raises:
        Malformed: the bytes are no message.
    """
    found: Fields = {}
    at = count = 0
    while at < len(data):
        key, at = _varint(data, at)
        count += 1
        if count > FIELDS_MAX:
            raise Malformed(f"more than {FIELDS_MAX} fields")
        value, at = _value(data, at, key & 7)
        found.setdefault(key >> 3, []).append(value)
    return found


def number(found: Fields, field: int, default: int = 0) -> int:
    """Return a field's last number, as the signed one that it is; raise Malformed if it is none."""
    values = found.get(field)
    if not values:
        return default
    value = values[-1]
    if not isinstance(value, int):
        raise Malformed(f"field {field}: bytes; expected a number")
    return _signed(value)


def numbers(found: Fields, field: int) -> tuple[int, ...]:
    """Return all numbers of a repeated field, packed or not, signed."""
    values: list[int] = []
    for value in found.get(field, ()):
        if isinstance(value, int):
            values.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            one, at = _varint(value, at)
            values.append(_signed(one))
    return tuple(values)


def data_of(found: Fields, field: int) -> bytes:
    """Return a field's last bytes, b"" for none; raise Malformed if it is a number."""
    values = found.get(field)
    value = values[-1] if values else b""
    if not isinstance(value, bytes):
        raise Malformed(f"field {field}: a number; expected bytes")
    return value


def messages(found: Fields, field: int) -> Iterator[Fields]:
    """Yield the messages of a repeated field."""
    for value in found.get(field, ()):
        if not isinstance(value, bytes):
            raise Malformed(f"field {field}: a number; expected a message")
        yield fields(value)


def message(parts: Iterable[tuple[int, int | bytes]]) -> bytes:
    """Return a message with these fields, in this order; a message inside is its bytes."""
    written = bytearray()
    for field, value in parts:
        if isinstance(value, int):
            written += _spelled(field << 3 | _VARINT) + _spelled(value % (1 << 64))
        else:
            written += _spelled(field << 3 | _BYTES) + _spelled(len(value)) + value
    return bytes(written)


def _value(data: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == _VARINT:
        return _varint(data, at)
    if kind == _BYTES:
        size, at = _varint(data, at)
    elif kind in (_FIXED64, _FIXED32):
        size = 8 if kind == _FIXED64 else 4
    else:
        raise Malformed(f"byte {at}: a field of kind {kind}; expected one of 0, 1, 2, 5")
    if size > len(data) - at:
        raise Malformed(f"byte {at}: a field of {size} bytes; expected at most {len(data) - at}")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        if at >= len(data):
            raise Malformed(f"byte {at}: the end; expected the rest of a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value % (1 << 64), at
    raise Malformed(f"byte {at}: a number of more than {_VARINT_BYTES_MAX} bytes")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _spelled(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
