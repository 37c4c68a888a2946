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
# A message's bytes, to be written one after the other, so that records are not copied to join them.
Pieces: TypeAlias = list[Payload]

NULL_TEXT: Final = _SHORT.pack(-1)
NULL_BYTES: Final = -1


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


def read_count(frame: Payload, at: int, name: str) -> tuple[int, int]:
    """Read an array's item count."""
    (count,) = _INT.unpack_from(frame, at)
    if count < 0:
        raise WireError(f"{name}: null; expected an array")
    return count, at + _INT.size


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
