"""Splits a stream of bytes into frames, in whatever portions the bytes arrive; the wire says how long each is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import TypeAlias

from harness.fabric.limits import HEAD_BYTES, WHOLE_BYTES_MAX
from harness.target.wire import NotFramedError


class Part(Enum):
    """The kind of a piece of a connection's bytes: a frame's beginning (often all of it), its rest, or opaque."""

    HEAD = auto()
    REST = auto()
    OPAQUE = auto()


Piece: TypeAlias = tuple[Part, bytes]
# Returns the size of the frame at an offset of a buffer, 0 for "more bytes are needed"; raises NotFramedError.
Size: TypeAlias = Callable[[bytes, int], int]


class Splitter:
    """
    The bytes of one direction of a connection.

    The pieces that feed has yielded, joined, are the bytes fed so far, without those still waiting in the
    splitter. A frame of up to WHOLE_BYTES_MAX is one HEAD piece. The HEAD of a larger one has at least
    HEAD_BYTES, and REST pieces follow. Where no frame begins, all bytes from there on are OPAQUE.

    Attributes:
        opaque: Whether the bytes that come are not split, for good.
        why: Why the wire found no frame; "" if it was not asked, or found one each time.
    """

    __slots__ = ("_need", "_rest", "_size", "_waiting", "opaque", "why")

    def __init__(self, size: Size | None) -> None:
        """Split by what `size` says; None: the bytes are opaque from the first on."""
        self.opaque = size is None
        self.why = ""
        self._size = size
        self._waiting = bytearray()
        self._need = 0
        self._rest = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Add bytes that arrived; yield the pieces that they complete, each before the next one is looked at."""
        if self.opaque or self._size is None:
            yield Part.OPAQUE, data
            return
        if self._rest:
            rest = data[: self._rest]
            self._rest -= len(rest)
            yield Part.REST, rest
            data = data[len(rest) :]
        if self._waiting:
            self._waiting += data
            if len(self._waiting) < self._need:
                return
            data = bytes(self._waiting)
            self._waiting = bytearray()
        yield from self._split(data, self._size)

    def surrender(self) -> list[Piece]:
        """Return the bytes that still wait; treat all that follow as opaque."""
        waiting, self._waiting = bytes(self._waiting), bytearray()
        self.opaque = True
        return [(Part.OPAQUE, waiting)] if waiting else []

    def _split(self, data: bytes, size_of: Size) -> Iterator[Piece]:
        offset, total = 0, len(data)
        while offset < total:
            if self.opaque:  # whoever read the piece before has given up
                yield Part.OPAQUE, data[offset:]
                return
            have = total - offset
            try:
                size = size_of(data, offset)
            except NotFramedError as error:
                self.opaque, self.why = True, str(error)
                yield Part.OPAQUE, data[offset:]
                return
            if size and have >= size:
                yield Part.HEAD, data[offset : offset + size]
                offset += size
            elif size > WHOLE_BYTES_MAX and have >= HEAD_BYTES:
                self._rest = size - have
                yield Part.HEAD, data[offset:]
                return
            else:
                self._waiting = bytearray(data[offset:])
                self._need = (HEAD_BYTES if size > WHOLE_BYTES_MAX else size) or have + 1
                return
