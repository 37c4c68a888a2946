"""
One blocking connection to a broker, with a deadline: each request is sent once, with or without an answer.

After a NoAnswer it must be closed: the answer may still come, and would be taken for that of the next request.

The errors say whether a request can have had an effect: NotSent says no, NoAnswer says that it may.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from harness.clients.clock import left
from harness.model import FencepostError
from targets.kafka_family.wire.frames import Unreadable
from targets.kafka_family.wire.requests import Question

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">i")
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024


class NotSent(FencepostError):
    """The request was never sent and had no effect."""


class NoAnswer(FencepostError):
    """The request was sent, but no valid answer came in time: its effect is unknown."""


class Connection:
    """
    A connection to "host:port".

    Attributes:
        deadline: in seconds of the monotonic clock, for all use of the connection; who uses it again moves it.

    Raises:
        NotSent: it cannot connect.
    """

    def __init__(self, address: str, client_id: str, deadline: float) -> None:
        self._address = address
        self._client_id = client_id
        self.deadline = deadline
        self._correlation_id = 0
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=left(deadline))
        except OSError as error:
            raise NotSent(f"{address}: {error}; expected a connection") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; safe to call twice."""
        self._socket.close()

    @property
    def over(self) -> bool:
        """Whether the broker has closed it, or has sent what nobody asked for: then it cannot be used again."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def send(self, question: Question[Any]) -> None:
        """
        Send a request, without waiting for its answer.

        Raises:
            NoAnswer: it was not sent whole.
        """
        self._correlation_id += 1
        frame = question.frame(self._correlation_id, self._client_id)
        try:
            self._socket.settimeout(left(self.deadline))
            self._socket.sendall(frame)
        except OSError as error:
            raise NoAnswer(f"{self._address}: {error}; expected to send {len(frame)} bytes") from error

    def ask(self, question: Question[T]) -> T:
        """
        Send a request and return its answer.

        Raises:
            NoAnswer: no answer came in time, or it cannot be read.
        """
        self.send(question)
        frame = self._receive()
        try:
            return question.answer(frame, self._correlation_id)
        except Unreadable as error:
            raise NoAnswer(f"{self._address}: {error}") from error

    def _receive(self) -> bytes:
        try:
            (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
            if not 0 <= length <= FRAME_BYTES_MAX:
                raise NoAnswer(f"{self._address}: frame of {length} bytes; expected 0 to {FRAME_BYTES_MAX}")
            return self._exactly(length)
        except OSError as error:
            raise NoAnswer(f"{self._address}: {error}; expected an answer") from error

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            self._socket.settimeout(left(self.deadline))
            more = self._socket.recv(count - len(received))
            if not more:
                raise NoAnswer(f"{self._address}: hung up after {len(received)} of {count} bytes")
            received += more
        return bytes(received)
