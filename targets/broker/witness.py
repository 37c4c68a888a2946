"""
How a broker tells the history what it does: one JSON line for each event, unbuffered, over TCP.

Not through the filesystem, which loses power; and with a blocking send, so that a killed broker has told all
it did: the kernel still delivers what was sent.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("fencepost.broker")

CONNECT_S_MAX = 10.0
# What comes with every record: for a collector alone, a log would be all of it.
EVERY_RECORD = frozenset({"append", "high-watermark", "flush", "flushed"})


class Witness:
    """Send events to the collector at `address`; None only logs them, but for what comes with every record."""

    def __init__(self, node: str, address: tuple[str, int] | None) -> None:
        self._node = node
        self._socket: socket.socket | None = None
        if address is not None:
            self._socket = socket.create_connection(address, timeout=CONNECT_S_MAX)
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def tell(self, f: str, value: Mapping[str, Any]) -> None:
        """Send one event; a collector that is gone ends the telling, never the broker."""
        often = f in EVERY_RECORD
        if often and self._socket is None:
            return
        line = json.dumps({"node": self._node, "pid": os.getpid(), "f": f, "value": value})
        if not often:
            log.info("%s", line)
        if self._socket is None:
            return
        try:
            self._socket.sendall(line.encode() + b"\n")
        except OSError as error:
            log.warning("collector: %r; this broker goes on untold", error)
            self.close()

    def close(self) -> None:
        """End the telling; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
