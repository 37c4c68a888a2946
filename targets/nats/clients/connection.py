"""
One blocking connection to a server as its clients have: publish with a reply subject, wait for what comes there.

It never connects again and never sends again: what is lost stays lost, and its caller says so.

Source:  NATS's documentation, "NATS Client Protocol"; ADR-4 (headers), ADR-9 (no responders).
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from harness.model import FencepostError
from harness.target.log_client import Refused

# The user of the system account, who can ask a server about itself; loopback alone hears the password.
SYSTEM: Final = "sys"
# What is taken from a server: a line of the protocol (INFO is one), and a message.
LINE_BYTES_MAX: Final = 1024 * 1024
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
_RECEIVE_BYTES: Final = 65_536
# Python refuses to read a number of thousands of digits.
_DIGITS_MAX: Final = 20
_NO_RESPONDERS: Final = b"NATS/1.0 503"


class NoRespondersError(FencepostError):
    """Nobody who could answer is known to the server: nothing was done."""


class Came(NamedTuple):
    """A message that came to one of the reply subjects."""

    number: int
    headers: bytes
    payload: bytes


class Connection:
    """
    A connection to "host:port".

    Attributes:
        server: the server's own id, which requests about itself name.

    Raises:
        Refused: it cannot be made, so that nothing was asked.
        OSError: it is lost, or nothing came in time; what was published may be done.
    """

    def __init__(self, address: str, patience_s: float, *, user: str = "") -> None:
        host, _, port = address.rpartition(":")
        self._until = time.monotonic() + patience_s
        self._received = bytearray()
        self._number = 0
        self._inbox = f"_INBOX.{os.urandom(8).hex()}"
        try:
            self._socket = socket.create_connection((host, int(port)), patience_s)
        except OSError as error:
            raise Refused(f"{address}: {error}; expected a connection") from error
        try:
            self.server = self._greet(user)
        except (OSError, ValueError, RecursionError) as error:
            self._socket.close()
            raise Refused(f"{address}: {error}; expected a NATS server") from error

    def _greet(self, user: str) -> str:
        """Introduce this client, and return the id of the server."""
        verb, _, text = self._line().partition(b" ")
        if verb != b"INFO":
            raise ValueError(f"{verb[:20]!r}; expected INFO")
        told = json.loads(text)
        options = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "lang": "fencepost",
        }
        if user:
            options |= {"user": user, "pass": user}
        hello = f"CONNECT {json.dumps(options)}\r\nSUB {self._inbox}.* 1\r\nPING\r\n"
        self._socket.sendall(hello.encode())
        while (line := self._line()) != b"PONG":
            _refuse_error(line)
        return str(told.get("server_id", "")) if isinstance(told, dict) else ""

    def close(self) -> None:
        """Close it; safe to call twice."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for several connections at once."""
        return self._socket.fileno()

    def publish(self, subject: str, payload: bytes = b"") -> int:
        """Send a message, and return the number under which what is replied comes."""
        self._number += 1
        head = f"PUB {subject} {self._inbox}.{self._number} {len(payload)}\r\n"
        self._socket.sendall(head.encode() + payload + b"\r\n")
        return self._number

    def receive(self, until: float) -> Came:
        """Return the next message that comes before a moment of the monotonic clock."""
        self._until = until
        while True:
            line = self._line()
            _refuse_error(line)
            match line.split():
                case [b"MSG", subject, _, *_, size]:
                    return Came(_number_of(subject), b"", self._payload(_size(size)))
                case [b"HMSG", subject, _, *_, head, size] if _size(head) <= _size(size):
                    body = self._payload(_size(size))
                    return Came(_number_of(subject), body[: _size(head)], body[_size(head) :])
                case [b"MSG" | b"HMSG", *_]:
                    raise OSError(f"{line[:200]!r}; expected a message of the protocol")
                case [b"PING"]:
                    self._socket.sendall(b"PONG\r\n")

    def ask(self, subject: str, body: Mapping[str, Any] | bytes = b"", *, within_s: float) -> bytes:
        """
        Publish a question, and return its answer.

        Raises:
            NoRespondersError: nobody can answer.
        """
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        until = time.monotonic() + within_s
        self._until = until
        self._socket.settimeout(within_s)
        number = self.publish(subject, payload)
        while (came := self.receive(until)).number != number:
            pass
        return answer_of(subject, came)

    def _line(self) -> bytes:
        while (end := self._received.find(b"\r\n")) < 0:
            if len(self._received) > LINE_BYTES_MAX:
                raise OSError(f"a line of more than {LINE_BYTES_MAX} bytes; expected one of the protocol")
            self._more()
        line = bytes(self._received[:end])
        del self._received[: end + 2]
        return line

    def _payload(self, size: int) -> bytes:
        while len(self._received) < size + 2:
            self._more()
        found = bytes(self._received[:size])
        del self._received[: size + 2]
        return found

    def _more(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(left)
        more = self._socket.recv(_RECEIVE_BYTES)
        if not more:
            raise ConnectionError("the server hung up")
        self._received += more


def answer_of(subject: str, came: Came) -> bytes:
    """Return what an answer has; raise NoRespondersError for one that says that there is none."""
    if came.headers.startswith(_NO_RESPONDERS):
        raise NoRespondersError(f"{subject}: no responders")
    return came.payload


def _refuse_error(line: bytes) -> None:
    if line.startswith(b"-ERR"):
        raise ConnectionError(f"the server says {line[:200]!r}")


def _number_of(subject: bytes) -> int:
    number = subject.rpartition(b".")[2]
    return int(number) if number.isdigit() and len(number) <= _DIGITS_MAX else 0


def _size(word: bytes) -> int:
    if not word.isdigit() or len(word) > _DIGITS_MAX or (size := int(word)) > MESSAGE_BYTES_MAX:
        raise OSError(f"a message of {word[:20]!r} bytes; expected at most {MESSAGE_BYTES_MAX}")
    return size
