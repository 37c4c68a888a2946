"""A connection's bytes as frames: four bytes of length, then a message that begins with its header."""

from __future__ import annotations

import struct
from typing import Final

from targets.broker.core.messages import Payload
from targets.broker.wire.scalars import WireError

# Kafka's default for socket.request.max.bytes.
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
# Frames up to this size share one buffer; each larger one gets its own.
SMALL_BYTES: Final = 64 * 1024
# The first buffer of a large frame: the announced length alone must not reserve memory, as the bytes may never
# come. Requests of the default size, 1 MiB and some, fit in and are never moved.
EAGER_BYTES: Final = 1280 * 1024

_LENGTH: Final = struct.Struct(">i")
_CORRELATION: Final = struct.Struct(">i")


class FrameSplitter:
    """
    Split a connection's bytes into frames, each without its length.

    The receiver asks for `room`, writes there, and reports how much `came`. A large frame is never copied: it is
    returned in the buffer that received it.

    Raises:
        WireError: the length is invalid; the connection cannot be used any more.
    """

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._max = frame_bytes_max
        self._shared = memoryview(bytearray(SMALL_BYTES))
        self._large: memoryview | None = None
        self._length = 0  # announced length of the large frame
        self._filled = 0  # of the large frame if there is one, else of the shared buffer

    def room(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        return (self._shared if self._large is None else self._large)[self._filled :]

    def came(self, count: int) -> list[Payload]:
        """Record that so many bytes came into the room, and return the frames that they complete."""
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
        """Return a larger buffer for the large frame, at most its length, with the bytes that came so far."""
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
    """Return the correlation id of a response's frame, which identifies its request."""
    if len(frame) < _CORRELATION.size:
        raise WireError(f"response of {len(frame)} bytes; expected a header")
    return int(_CORRELATION.unpack_from(frame)[0])
