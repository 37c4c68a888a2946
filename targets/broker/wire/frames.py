"""A connection's bytes as frames: four bytes of length, then a message that begins with its header."""

from __future__ import annotations

import struct
from typing import Final

from targets.broker.core.messages import Payload
from targets.broker.wire.scalars import WireError

# Kafka's default for socket.request.max.bytes.
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
# Frames up to this size share one buffer; each larger one is received where it stays.
SMALL_BYTES: Final = 64 * 1024
# Room that is made for a large frame before more of it has come than its length: somebody may promise much and
# send nothing. What clients and followers send by default, 1 MiB and some, is never moved.
EAGER_BYTES: Final = 1280 * 1024

_LENGTH: Final = struct.Struct(">i")
_CORRELATION: Final = struct.Struct(">i")


class FrameSplitter:
    """
    Cut what comes over a connection into frames, each without its length.

    Shapes:  whoever receives asks for `room`, writes there, and says how much `came`. A large frame is never
             copied: what it is given as is where its bytes were received.
    Raises:  WireError for a length that no frame of ours has; the connection is of no use after it.
    """

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._max = frame_bytes_max
        self._shared = memoryview(bytearray(SMALL_BYTES))
        self._large: memoryview | None = None
        self._length = 0  # that the large frame will have
        self._filled = 0  # of the large frame where there is one, else of the shared buffer

    def room(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        return (self._shared if self._large is None else self._large)[self._filled :]

    def came(self, count: int) -> list[Payload]:
        """Take note of so many bytes in the room that was given, and give the frames that they complete."""
        self._filled += count
        if self._large is None:
            return self._cut()
        if self._filled == self._length:
            frame, self._large, self._filled = self._large.toreadonly(), None, 0
            return [frame]
        if self._filled == len(self._large):
            self._large = self._moved(self._large, 2 * self._filled)
        return []

    def _moved(self, so_far: memoryview, room: int) -> memoryview:
        """Give a buffer for the large frame, as much of it as there may be room for, with what has come of it."""
        larger = memoryview(bytearray(min(room, self._length)))
        larger[: len(so_far)] = so_far
        return larger

    def _cut(self) -> list[Payload]:
        frames: list[Payload] = []
        at, end = 0, self._filled
        while end - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._shared, at)
            if not 0 <= length <= self._max:
                raise WireError(f"frame of {length} bytes; expected 0 to {self._max}")
            body = at + _LENGTH.size
            if body + length > end:
                if _LENGTH.size + length > SMALL_BYTES:
                    self._length, self._filled = length, end - body
                    self._large = self._moved(self._shared[body:end], EAGER_BYTES)
                    return frames
                break
            frames.append(bytes(self._shared[body : body + length]))
            at = body + length
        self._shared[: end - at] = self._shared[at:end]
        self._filled = end - at
        return frames


def correlation_of(frame: Payload) -> int:
    """The correlation id of a response's frame, by which its request is found."""
    if len(frame) < _CORRELATION.size:
        raise WireError(f"response of {len(frame)} bytes; expected a header")
    return int(_CORRELATION.unpack_from(frame)[0])
