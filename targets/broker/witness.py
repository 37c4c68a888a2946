"""
A broker's events for the history: one JSON line each, unbuffered, over TCP.

TCP, not the filesystem, which may lose power; a blocking send, so that a killed broker's events are complete:
the kernel still delivers what was sent. The first line shows the node's secret: on a shared machine anybody may
connect to the collector.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

log = logging.getLogger("fencepost.broker")

CONNECT_S_MAX = 10.0
# Events of every record go to the collector alone; they would drown the log.
EVERY_RECORD = frozenset({"append", "high-watermark", "flush", "flushed"})


class Witness:
    """
    Send events to the collector at `address`; with None, only log them, except those of every record.

    Args:
        secret: what the collector expects of this node.
    """

    def __init__(self, node: str, address: tuple[str, int] | None, secret: str = "") -> None:
        self._node = node
        self._pid = os.getpid()
        self._socket: socket.socket | None = None
        if address is not None:
            self._socket = socket.create_connection(address, timeout=CONNECT_S_MAX)
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._send(json.dumps({"node": node, "secret": secret}))

    def emit(self, f: str, value: Mapping[str, Any]) -> None:
        """Send one event; a lost collector ends the sending, never the broker."""
        self.emit_all([(f, value)])

    def emit_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Send events that follow each other, one line each, at once: a failover has some for each partition."""
        lines: list[str] = []
        logged: list[str] = []
        for f, value in events:
            often = f in EVERY_RECORD
            if often and self._socket is None:
                continue
            lines.append(json.dumps({"node": self._node, "pid": self._pid, "f": f, "value": value}))
            if not often:
                logged.append(lines[-1])
        if logged:
            log.info("%s", "\n".join(logged))
        if lines:
            self._send("\n".join(lines))

    def _send(self, lines: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendall(lines.encode() + b"\n")
        except OSError as error:
            log.warning("collector: %r; this broker continues without events", error)
            self.close()

    def close(self) -> None:
        """Stop sending; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
