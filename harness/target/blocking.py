"""
One blocking connection to "host:port": bytes are sent and awaited, each call within a time.

After anything but a whole answer it must be closed: the answer may still come.
"""

from __future__ import annotations

import socket
import time
from typing import Final

from harness.target.log_client import Refused

_RECEIVED_MAX: Final = 1024 * 1024


class Blocking:
    """
    A connection.

    Raises:
        Refused: it cannot be made, so that nothing was asked.
    """

    def __init__(self, address: str, patience_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._until = time.monotonic() + patience_s
        try:
            self._socket = socket.create_connection((host, int(port)), patience_s)
        except OSError as error:
            raise Refused(f"{address}: {error}; expected a connection") from error

    def close(self) -> None:
        """Close it; safe to call twice."""
        self._socket.close()

    def send(self, data: bytes, within_s: float) -> None:
        """Send bytes, after which answers are awaited for as long; raise OSError if they cannot be sent."""
        self._until = time.monotonic() + within_s
        self._socket.settimeout(within_s)
        self._socket.sendall(data)

    def exactly(self, count: int) -> bytes:
        """Return so many bytes; raise OSError if they do not come in time."""
        received = bytearray()
        while len(received) < count:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer: {len(received)} of {count} bytes")
            self._socket.settimeout(left)
            more = self._socket.recv(min(count - len(received), _RECEIVED_MAX))
            if not more:
                raise ConnectionError(f"hung up after {len(received)} of {count} bytes")
            received += more
        return bytes(received)
