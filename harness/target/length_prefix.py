"""
Frames that begin with their length, 4 bytes, big-endian and signed: as many systems have them.

Nothing here does IO.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

from harness.target.wire import UNKNOWN, Direction, Link, Message, NotFramedError, Seen

# (topic, partition).
Position = tuple[str, int]

LENGTH: Final = struct.Struct(">i")
# A larger length is no frame (Kafka takes 100 MiB by default), but TLS, a word of four letters, or noise.
LENGTH_MAX: Final = 128 * 1024 * 1024 - LENGTH.size
# Requests that wait for an answer on one connection; beyond it the oldest is forgotten.
PENDING_REQUESTS_MAX: Final = 10_000


def frame_size(buffer: bytes, offset: int) -> int:
    """
    Return the size of the frame at the offset, its length included; 0 if the length is not all there.

    Raises:
        NotFramedError: No frame has this length.
    """
    if len(buffer) - offset < LENGTH.size:
        return 0
    (length,) = LENGTH.unpack_from(buffer, offset)
    if not 0 <= length <= LENGTH_MAX:
        raise NotFramedError(f"frame length {length}; expected a frame: the connection passes unread")
    return LENGTH.size + int(length)


def is_whole(frame: bytes) -> bool:
    """Return True if a HEAD piece holds its whole frame."""
    (length,) = LENGTH.unpack_from(frame)
    return bool(length == len(frame) - LENGTH.size)


class LengthPrefixed(ABC):
    """A connection whose requests and answers both begin with their length."""

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """Return the size of the frame at the offset, as `frame_size`."""
        del direction
        return frame_size(buffer, offset)

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Identify a request, which is kept until its answer comes, or an answer by its request."""
        return self._request(frame) if direction is Direction.REQUEST else self._answer(frame)

    @abstractmethod
    def _request(self, frame: bytes) -> Message: ...

    @abstractmethod
    def _answer(self, frame: bytes) -> Message: ...


def changed(places: Iterable[tuple[Position, int]], known: dict[Position, int]) -> dict[Position, int]:
    """Return the offsets of partitions that are not those of before, which they are in `known` from now on."""
    fresh = {place: offset for place, offset in places if known.get(place) != offset}
    known.update(fresh)
    return fresh


class UnreadFrames:
    """Frames that no rule tells apart but by their direction, such as those between clients and a node."""

    def __init__(self, link: Link) -> None:
        self._messages = {
            direction: Message(seen=Seen(link=link, api=UNKNOWN, direction=direction)) for direction in Direction
        }

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        """Return the length."""
        del direction
        return frame_size(buffer, offset)

    def read(self, frame: bytes, direction: Direction) -> Message:
        """Return a request or an answer, without reading it."""
        del frame
        return self._messages[direction]

    def sent_again(self, correlation: int) -> None:
        """Raise AssertionError: a copy of a client's request would be another request."""
        raise AssertionError(f"request {correlation} was sent again; expected no client's request to be doubled")
