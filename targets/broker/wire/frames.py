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
# Where every connection of the process receives: asyncio asks for a buffer, fills it and reports the bytes before
# it turns to the next connection. So an idle connection has no buffer.
_SCRATCH: Final = memoryview(bytearray(SMALL_BYTES))


class FrameSplitter:
    """
    Split a connection's bytes into frames, each without its length.

    The receiver asks for `room`, writes there, and reports how much `came`; in one thread, as the room for small
    frames is shared by all. A large frame is never copied: it is returned in the buffer that received it. While
    `wanted` is not 0, it needs a buffer, or a larger one, and there is no room until it may `grow`.

    Raises:
        WireError: the length is invalid; the connection cannot be used any more.
    """

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._max = frame_bytes_max
        self._rest = b""  # of a frame that is not whole: from its length on, of a large one without it
        self._length = 0  # announced length of the large frame, 0 while there is none
        self._large: memoryview | None = None
        self._filled = 0  # of the large frame's buffer

    @property
    def held(self) -> int:
        """Return the bytes of the buffer for a large frame."""
        return 0 if self._large is None else len(self._large)

    @property
    def wanted(self) -> int:
        """Return the bytes of the buffer that the large frame needs to go on, 0 if it needs none."""
        if not self._length or self._filled < self.held:
            return 0
        return min(self._length, 2 * self._filled or EAGER_BYTES)

    def grow(self) -> None:
        """Get that buffer, with the bytes that came so far."""
        larger = memoryview(bytearray(self.wanted))
        so_far = self._rest if self._large is None else self._large
        larger[: len(so_far)] = so_far
        self._large, self._filled, self._rest = larger, len(so_far), b""

    def room(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        if self._large is not None:
            return self._large[self._filled :]
        _SCRATCH[: len(self._rest)] = self._rest
        return _SCRATCH[len(self._rest) :]

    def came(self, count: int) -> list[Payload]:
        """Record that so many bytes came into the room, and return the frames that they complete."""
        if self._large is None:
            return self._cut(len(self._rest) + count)
        self._filled += count
        if self._filled < self._length:
            return []
        frame, self._large = self._large.toreadonly(), None
        self._length = self._filled = 0
        return [frame]

    def _cut(self, end: int) -> list[Payload]:
        frames: list[Payload] = []
        at = 0
        while end - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(_SCRATCH, at)
            if not 0 <= length <= self._max:
                raise WireError(f"frame of {length} bytes; expected 0 to {self._max}")
            body = at + _LENGTH.size
            if body + length > end:
                if _LENGTH.size + length > SMALL_BYTES:
                    self._length, at = length, body
                break
            frames.append(bytes(_SCRATCH[body : body + length]))
            at = body + length
        self._rest = bytes(_SCRATCH[at:end])
        return frames


def correlation_of(frame: Payload) -> int:
    """Return the correlation id of a response's frame, which identifies its request."""
    if len(frame) < _CORRELATION.size:
        raise WireError(f"response of {len(frame)} bytes; expected a header")
    return int(_CORRELATION.unpack_from(frame)[0])
