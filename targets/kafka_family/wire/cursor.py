"""
Read values one after another from a message's bytes, in Kafka's plain or its flexible encoding.

Source:  KIP-482 (compact lengths, tagged fields).
"""

from __future__ import annotations

import struct
from typing import Any, Final

from targets.kafka_family.wire.frames import Unreadable

VARINT_BYTES_MAX: Final = 5
TOPIC_ID_BYTES: Final = 16

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_NULL: Final = -1


class Cursor:
    """A position in a buffer that advances with every value read; raises Unreadable for bytes that do not fit."""

    __slots__ = ("_buffer", "_flexible", "offset")

    def __init__(self, buffer: bytes, offset: int, *, flexible: bool) -> None:
        self._buffer = buffer
        self._flexible = flexible
        self.offset = offset

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read the values of the layout."""
        try:
            values = layout.unpack_from(self._buffer, self.offset)
        except struct.error as error:
            raise Unreadable(f"at {self.offset}: {error}; expected {layout.size} bytes") from error
        self.offset += layout.size
        return values

    def count(self) -> int:
        """Read an array's length; a null array counts as empty."""
        return max(self._length(), 0)

    def items(self) -> int:
        """Read the length of an array that must not be null."""
        before, found = self.offset, self._length()
        if found == _NULL:
            raise Unreadable(f"at {before}: a null array; expected its elements")
        return found

    def numbers(self) -> tuple[int, ...]:
        """Read an array of 4-byte numbers."""
        return tuple(self.take(_INT)[0] for _ in range(self.count()))

    def text(self) -> str:
        """Read a string."""
        length: int = self._varint() - 1 if self._flexible else self.take(_SHORT)[0]
        data = self._bytes(length)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Unreadable(f"text before {self.offset}: {error}; expected UTF-8") from error

    def nullable_text(self) -> str | None:
        """Read a string, None for null."""
        before = self.offset
        length: int = self._varint() - 1 if self._flexible else self.take(_SHORT)[0]
        if length == _NULL:
            return None
        self.offset = before
        return self.text()

    def data(self) -> bytes:
        """Read bytes after their length; null counts as none."""
        length: int = self._varint() - 1 if self._flexible else self.take(_INT)[0]
        return b"" if length == _NULL else self._bytes(length)

    def end(self) -> None:
        """Raise Unreadable if bytes are left."""
        if left := len(self._buffer) - self.offset:
            raise Unreadable(f"at {self.offset}: {left} bytes are left; expected none")

    def topic_id(self) -> str:
        """Read a topic id, as hex."""
        return self._bytes(TOPIC_ID_BYTES).hex()

    def skip_tags(self) -> None:
        """Skip tagged fields, which only the flexible encoding has."""
        if self._flexible:
            for _ in range(self._varint()):
                self._varint()
                self._bytes(self._varint())

    def _length(self) -> int:
        """Read an array's length, -1 for null."""
        found: int = self._varint() - 1 if self._flexible else self.take(_INT)[0]
        if not _NULL <= found <= len(self._buffer) - self.offset:
            raise Unreadable(f"at {self.offset}: {found} elements; expected no more than the bytes that follow")
        return found

    def _bytes(self, length: int) -> bytes:
        end = self.offset + length
        if length < 0 or end > len(self._buffer):
            raise Unreadable(f"at {self.offset}: {length} bytes; expected 0 to {len(self._buffer) - self.offset}")
        data = self._buffer[self.offset : end]
        self.offset = end
        return data

    def _varint(self) -> int:
        value = 0
        for index in range(VARINT_BYTES_MAX):
            if self.offset >= len(self._buffer):
                raise Unreadable(f"at {self.offset}: the bytes end inside a number")
            byte = self._buffer[self.offset]
            self.offset += 1
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise Unreadable(f"before {self.offset}: a number longer than {VARINT_BYTES_MAX} bytes")
