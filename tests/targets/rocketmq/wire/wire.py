"""Frames of the replication between brokers, and a reader of frames whose every answer the fabric's guard sees."""

from __future__ import annotations

import struct
from typing import Any, Final

from harness.fabric.guard import Guard
from harness.target.wire import Direction, Link, Message, Reading, Seen
from targets.rocketmq.wire.wire import LINKS, WIRE

LINK: Final[Link] = ("B", "A")
REMOTING, REPLICATION, CLIENTS = LINKS
READY, HANDSHAKE, TRANSFER, SUSPEND, SHUTDOWN = range(5)


def slave_handshake(number: int = 2, flags: int = 0) -> bytes:
    return struct.pack(">iiq", HANDSHAKE, flags, number)


def report(end: int) -> bytes:
    return struct.pack(">iq", TRANSFER, end)


def master_handshake(end: int, *starts: tuple[int, int]) -> bytes:
    table = b"".join(struct.pack(">iq", epoch, start) for epoch, start in starts)
    return struct.pack(">iiqi", HANDSHAKE, len(table), end, starts[-1][0] if starts else 0) + table


def transfer(position: int, data: bytes = b"", *, epoch: int = 1, begins: int = 0, confirmed: int = 0) -> bytes:
    return struct.pack(">iiqiqq", TRANSFER, len(data), position, epoch, begins, confirmed) + data


def asked(api: str, *offsets: tuple[str, int], correlation: int = -1) -> Seen:
    return Seen(link=LINK, api=api, direction=Direction.REQUEST, offsets=offsets, correlation=correlation)


def given(api: str, *offsets: tuple[str, int], correlation: int = -1) -> Seen:
    return Seen(link=LINK, api=api, direction=Direction.ANSWER, offsets=offsets, correlation=correlation)


class Calling:
    """A watch that calls at once, and waits for nothing."""

    def call(self, function: Any, *args: Any) -> Any:
        return function(*args)


class Guarded:
    """A reading whose every answer the guard of the fabric looks at."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        watch: Any = Calling()
        self.guard = Guard("rocketmq", watch, self._failed)

    def _failed(self, text: str) -> None:
        raise AssertionError(text)

    def size(self, data: bytes, direction: Direction, at: int = 0) -> int:
        return self.guard.size(self.reading, direction, data, at)

    def read(self, frame: bytes, direction: Direction) -> Message:
        return self.guard.read(self.reading, frame, direction)

    def stream(self, data: bytes, direction: Direction) -> list[Message]:
        """Read frame after frame, as far as there are whole ones."""
        found: list[Message] = []
        at = 0
        while at < len(data) and (size := self.size(data, direction, at)):
            if size > len(data) - at:
                break
            found.append(self.read(data[at : at + size], direction))
            at += size
        return found


def of_kind(kind: object) -> Guarded:
    """Return the reading of a new connection of a new run."""
    (wanted,) = [each for each in LINKS if each is kind]
    reading = WIRE.hear({}).reading(wanted, LINK)
    assert reading is not None
    return Guarded(reading)
