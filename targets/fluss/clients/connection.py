"""
One blocking connection to a server's listener for clients: a question, then its answer, each within a time.

After anything but an answer it must be closed: the answer may still come.
"""

from __future__ import annotations

import socket
import time
from typing import Final

from harness.model import FencepostError
from harness.target.length_prefix import LENGTH
from harness.target.log_client import Refused
from targets.fluss.wire.frames import Api, Type, answer_body, answer_head, request
from targets.fluss.wire.protobuf import Fields, data_of, fields, number

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_SHOWN: Final = 200


class ServerError(FencepostError):
    """The server answered with an error, which has a code of Errors.java."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"error {code}: {text[:_SHOWN]}")
        self.code = code
        self.text = text


class Connection:
    """
    A connection to "host:port".

    Raises:
        Refused: it cannot be made, so that nothing was asked.
    """

    def __init__(self, address: str, patience_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._until = time.monotonic() + patience_s
        self._number = 0
        try:
            self._socket = socket.create_connection((host, int(port)), patience_s)
        except OSError as error:
            raise Refused(f"{address}: {error}; expected a connection") from error

    def close(self) -> None:
        """Close it; safe to call twice."""
        self._socket.close()

    def ask(self, key: Api, body: bytes, within_s: float) -> Fields:
        """
        Send a request, and return the message of its answer.

        Raises:
            OSError: no answer in time; what was asked may be done.
            ServerError: the server says that it did not do it.
        """
        self._until = time.monotonic() + within_s
        self._number += 1
        self._socket.settimeout(within_s)
        self._socket.sendall(request(key, self._number, body))
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        if not 0 <= length <= ANSWER_BYTES_MAX:
            raise OSError(f"answer of {length} bytes; expected at most {ANSWER_BYTES_MAX}")
        frame = LENGTH.pack(length) + self._exactly(length)
        try:
            kind, _ = answer_head(frame)
            found = fields(answer_body(frame))
        except ValueError as error:  # Unreadable or Malformed: it may have done what it was asked
            raise OSError(f"answer of {length} bytes: {error}; expected a message") from error
        if kind != Type.SUCCESS:
            raise ServerError(number(found, 1), data_of(found, 2).decode(errors="replace"))
        return found

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer: {len(received)} of {count} bytes")
            self._socket.settimeout(left)
            more = self._socket.recv(count - len(received))
            if not more:
                raise ConnectionError(f"hung up after {len(received)} of {count} bytes")
            received += more
        return bytes(received)
