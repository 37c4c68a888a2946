"""
One blocking connection to a broker, with a deadline: each request is sent once, with or without an answer.

After a NoAnswer it must be closed: the answer may still come, and would be taken for that of the next request.

The errors say whether a request can have had an effect: NotSent says no, NoAnswer says that it may.
"""

from __future__ import annotations

import io
import socket
import struct
import time
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from harness.model import FencepostError
from targets.broker.wire.bounds import check_items
from targets.broker.wire.scalars import WireError, unlimited

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">i")
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024


class NotSent(FencepostError):
    """The request was never sent and had no effect."""


class NoAnswer(FencepostError):
    """The request was sent, but no valid answer came in time: its effect is unknown."""


def left(deadline: float) -> float:
    """Return the seconds until a monotonic deadline; always above 0, since sockets treat 0 differently."""
    return max(deadline - time.monotonic(), 0.001)


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

    def send(self, request: Any) -> None:
        """
        Send a request, one of kio's entities.

        Raises:
            NoAnswer: it was not sent whole.
        """
        self._correlation_id += 1
        kind = type(request)
        header = kind.__header_schema__(
            request_api_key=kind.__api_key__,
            request_api_version=kind.__version__,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        frame = io.BytesIO()
        entity_writer(type(header))(frame, header)
        entity_writer(kind)(frame, request)
        written = frame.getvalue()
        try:
            self._socket.settimeout(left(self.deadline))
            self._socket.sendall(_LENGTH.pack(len(written)) + written)
        except OSError as error:
            raise NoAnswer(f"{self._address}: {error}; expected to send {len(written)} bytes") from error

    def ask(self, request: Any, answer: type[T]) -> T:
        """
        Send a request and return its answer.

        Raises:
            NoAnswer: no answer came in time, or it cannot be read.
        """
        self.send(request)
        frame = self._receive()
        kind: Any = answer
        try:
            header, start = entity_reader(kind.__header_schema__)(frame, 0)
            # kio reserves memory for what an array announces; a broker under test may announce anything.
            check_items(kind, frame, start, unlimited(frame))
            found, _ = entity_reader(kind)(frame, start)
        except (SerialError, WireError, struct.error, ValueError, OverflowError, KeyError) as error:
            raise NoAnswer(f"{self._address}: {error!r}; expected a sound {answer.__name__}") from error
        if header.correlation_id != self._correlation_id:
            raise NoAnswer(f"{self._address}: answer {header.correlation_id}; expected {self._correlation_id}")
        value: T = found
        return value

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
