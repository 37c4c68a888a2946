"""
Who leads a partition, asked of brokers directly: the one that answers for the end of its log.

Requests and answers are packed here and not by a library of entities: for thousands of partitions ten times a
second, that would take a core from the brokers that are measured.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final

from harness.launch import Address
from harness.model import PreconditionError

_LIST_OFFSETS: Final = 2
_VERSION: Final = 2
_CLIENT_ID: Final = b"failover"
_CONSUMER: Final = -1
_LATEST: Final = -1
_HEAD: Final = struct.Struct(">hhih")
_PART: Final = struct.Struct(">ihqq")  # partition, error, timestamp, offset
ANSWER_S_MAX: Final = 60.0
# Between two rounds: often enough to tell a tenth of a second, and seldom enough to cost the brokers little.
ROUND_S: Final = 0.1
# For each of many: a broker takes some microseconds, and a tenth of its time is to go into it at most.
PARTITION_S: Final = 0.000_05
# Of one request; a broker answers so many in some milliseconds.
ASKED_MAX: Final = 2_000


class Prober:
    """
    Asks brokers for the log ends of partitions.

    Raises:
        OSError: a broker does not answer.
    """

    def __init__(self, brokers: Iterable[Address]) -> None:
        self._connections = [socket.create_connection((at.host, at.port), ANSWER_S_MAX) for at in brokers]
        self._number = 0

    def __enter__(self) -> Prober:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.close()

    def until_led(self, partitions: Sequence[tuple[str, int]], wait_s_max: float) -> list[float]:
        """
        Ask until every partition has a leader; return the seconds that each took, the shortest first.

        Raises:
            PreconditionError: some have none in time.
        """
        began, left, times = time.monotonic(), dict.fromkeys(partitions), list[float]()
        while left:
            if time.monotonic() - began > wait_s_max:
                some = ", ".join(f"{topic}-{number}" for topic, number in list(left)[:3])
                raise PreconditionError(f"{len(left)} partitions, as {some}: no leader in {wait_s_max:.0f} s")
            next_round = time.monotonic() + max(ROUND_S, len(left) * PARTITION_S)
            for connection in self._connections:
                for first in range(0, len(asked := list(left)), ASKED_MAX):
                    for led in self._led(connection, asked[first : first + ASKED_MAX]):
                        del left[led]
                        times.append(time.monotonic() - began)
            if left:
                select.select((), (), (), max(0.0, next_round - time.monotonic()))
        return times

    def _led(self, connection: socket.socket, asked: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return those of these partitions that this broker leads."""
        self._number += 1
        body = _HEAD.pack(_LIST_OFFSETS, _VERSION, self._number, len(_CLIENT_ID)) + _CLIENT_ID + _request(asked)
        connection.sendall(struct.pack(">i", len(body)) + body)
        size = struct.unpack(">i", _exactly(connection, 4))[0]
        return _answered(_exactly(connection, size))


def _request(asked: Sequence[tuple[str, int]]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, number in asked:
        topics.setdefault(topic, []).append(number)
    parts = [struct.pack(">ibi", _CONSUMER, 0, len(topics))]
    for topic, numbers in topics.items():
        name = topic.encode("ascii")
        parts.append(struct.pack(">h", len(name)) + name + struct.pack(">i", len(numbers)))
        parts += [struct.pack(">iq", number, _LATEST) for number in numbers]
    return b"".join(parts)


def _answered(frame: bytes) -> list[tuple[str, int]]:
    """Return the partitions of an answer that have no error."""
    found: list[tuple[str, int]] = []
    (topics,) = struct.unpack_from(">i", frame, 8)
    at = 12
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", frame, at)
        name = frame[at + 2 : at + 2 + length].decode("ascii")
        (count,) = struct.unpack_from(">i", frame, at + 2 + length)
        at += 6 + length
        for _ in range(count):
            number, error, _, _ = _PART.unpack_from(frame, at)
            at += _PART.size
            if error == 0:
                found.append((name, number))
    return found


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError(f"the broker at {connection.getpeername()} closed the connection")
        data += more
    return bytes(data)
