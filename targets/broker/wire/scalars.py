"""
Kafka's scalars by hand, for the messages that are sent for every record: Produce and Fetch.

kio reads and writes all other messages, and tests compare these with kio's, version by version. Reading copies
nothing: records stay where they were received.

Raises:
    WireError: see below.
    struct.error: the bytes end too soon; the codec raises WireError instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias, TypeVar

from targets.broker.core.messages import Payload, TopicPartition

_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_BYTE: Final = struct.Struct(">B")
# Kafka's unsigned numbers have 32 bits, in at most five bytes.
_VARINT_BITS: Final = 35
# An entity has no tagged fields.
NO_TAGS: Final = b"\0"
# A message's bytes, to be written one after the other, so that records are not copied to join them.
Pieces: TypeAlias = list[Payload]

NULL_TEXT: Final = _SHORT.pack(-1)
NULL_BYTES: Final = -1
# A topic with an empty name and no partitions.
TOPIC_BYTES_MIN: Final = _SHORT.size + _INT.size


class WireError(Exception):
    """Bytes are not a valid message; says what was read, with its value, and what was expected."""


class Placed(Protocol):
    """An item about one partition."""

    @property
    def tp(self) -> TopicPartition:
        """Return the partition."""


P = TypeVar("P", bound=Placed)


def take(frame: Payload, at: int, size: int) -> tuple[Payload, int]:
    """Return so many bytes and the offset after them."""
    end = at + size
    if size < 0 or end > len(frame):
        raise WireError(f"{size} bytes at {at} of {len(frame)}; expected as many, and not fewer than 0")
    return frame[at:end], end


def read_text(frame: Payload, at: int) -> tuple[str, int]:
    """Read a string that must not be null."""
    text, at = read_nullable_text(frame, at)
    if text is None:
        raise WireError(f"string at {at - _SHORT.size}: null; expected a text")
    return text, at


def read_nullable_text(frame: Payload, at: int) -> tuple[str | None, int]:
    """Read a string, None for null."""
    (size,) = _SHORT.unpack_from(frame, at)
    at += _SHORT.size
    if size == -1:
        return None, at
    data, end = take(frame, at, size)
    try:
        return str(data, "utf-8"), end
    except UnicodeDecodeError as error:
        raise WireError(f"string at {at}: {error}; expected UTF-8") from error


def read_varint(frame: Payload, at: int) -> tuple[int, int]:
    """Read an unsigned number of the flexible encoding (KIP-482): seven bits a byte, the lowest first."""
    value = 0
    for shift in range(0, _VARINT_BITS, 7):
        (byte,) = _BYTE.unpack_from(frame, at)
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise struct.error(f"number at {at - _VARINT_BITS // 7}: more than {_VARINT_BITS // 7} bytes")


def varint_bytes(value: int) -> bytes:
    """Write an unsigned number of the flexible encoding."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def read_compact_text(frame: Payload, at: int) -> tuple[str, int]:
    """Read a text of the flexible encoding that must not be null."""
    more, start = read_varint(frame, at)
    data, end = take(frame, start, more - 1)
    try:
        return str(data, "utf-8"), end
    except UnicodeDecodeError as error:
        raise WireError(f"string at {at}: {error}; expected UTF-8") from error


def compact_text_bytes(text: str) -> bytes:
    """Write a text in the flexible encoding."""
    data = text.encode("utf-8")
    return varint_bytes(len(data) + 1) + data


def skip_tags(frame: Payload, at: int) -> int:
    """Return the offset after an entity's tagged fields, which each have a number and a length."""
    count, at = read_varint(frame, at)
    for _ in range(count):
        _, at = read_varint(frame, at)
        size, at = read_varint(frame, at)
        _, at = take(frame, at, size)
    return at


class Items:
    """
    The items of one message, counted over all of its arrays.

    Args:
        most: how many it may have.
        limit: the limit's name, for the error.
    """

    __slots__ = ("_left", "_limit", "_most")

    def __init__(self, most: int, limit: str) -> None:
        self._most = self._left = most
        self._limit = limit

    def count(self, frame: Payload, at: int, name: str, least: int, *, null: bool = False) -> tuple[int, int]:
        """
        Read an array's item count: (count, offset after it).

        Args:
            name: the array's, for the error.
            least: the fewest bytes that an item takes.
            null: whether the array may be null, which counts as empty.
        """
        (count,) = _INT.unpack_from(frame, at)
        return self._taken(count, frame, at + _INT.size, name, least, null=null)

    def count_compact(
        self, frame: Payload, at: int, name: str, least: int, *, null: bool = False
    ) -> tuple[int, int]:
        """Read a compact array's item count, as `count` does: one more than there are items, 0 for null."""
        more, at = read_varint(frame, at)
        return self._taken(more - 1, frame, at, name, least, null=null)

    def _taken(self, count: int, frame: Payload, at: int, name: str, least: int, *, null: bool) -> tuple[int, int]:
        if count < 0:
            if null and count == -1:
                return 0, at
            raise WireError(f"{name}: {'null' if count == -1 else count}; expected an array")
        if count * least > len(frame) - at:
            raise WireError(f"{name}: {count} items in {len(frame) - at} bytes; expected {least} bytes for each")
        self._left -= count
        if self._left < 0:
            raise WireError(
                f"{name}: {self._most - self._left} items so far; expected at most {self._most} ({self._limit})"
            )
        return count, at


def unlimited(frame: Payload) -> Items:
    """Return items for an answer, which its own bytes bound."""
    return Items(len(frame), "its bytes")


def text_bytes(text: str) -> bytes:
    """Write a string."""
    data = text.encode("utf-8")
    return _SHORT.pack(len(data)) + data


def count_bytes(count: int) -> bytes:
    """Write an array's item count."""
    return _INT.pack(count)


def by_topic(items: Iterable[P]) -> dict[str, list[P]]:
    """Group items under their topics, in the order of each topic's first one, as Kafka's messages do."""
    groups: dict[str, list[P]] = {}
    for item in items:
        groups.setdefault(item.tp.topic, []).append(item)
    return groups
