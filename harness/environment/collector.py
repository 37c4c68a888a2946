"""
The collector: a TCP listener that receives the nodes' events, line by line, and records them in the history.

The kernel still delivers what a node sent before it was killed. `drain` waits for that, so that the history has
the events of a dead node before a fault changes its files.

Whoever is on this machine may connect. A connection's first line must name a node and show that node's secret of
this run; all its events are then of that node.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from harness import limits
from harness.events import Flush, LineUnreadable
from harness.history.file import History
from harness.launch import Address
from harness.model import OpType, PreconditionError, Source, events_of

_log = logging.getLogger(__name__)

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
# Of the first line, which anybody may send.
HELLO_BYTES_MAX: Final = 1024
HELLO_S_MAX: Final = 10.0
SHUTDOWN_POLL_S: Final = 0.02


class Collector:
    """
    Records the events that nodes send; each connection has its own thread.

    Args:
        on_flush: Called as on_flush(node, path, length) for every `flush` event.
    """

    def __init__(self, bind_address: str, history: History, on_flush: Callable[[str, str, int], None]) -> None:
        self._history = history
        self._on_flush = on_flush
        self._open: dict[str, int] = {}
        self._changed = threading.Condition()
        self._over = False
        self._key = secrets.token_bytes()
        self._refused = threading.Event()
        collector = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                collector._serve(self)

        self._server = socketserver.ThreadingTCPServer((bind_address, 0), Handler, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.server_bind()
        self._server.server_activate()
        host, port = self._server.server_address[:2]
        self.address = Address(host=str(host), port=int(port))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(SHUTDOWN_POLL_S,), name="collector", daemon=True
        )
        self._thread.start()

    def secret_of(self, node: str) -> str:
        """Return what this node must show when it connects; it does not let the node speak for another."""
        return hmac.new(self._key, node.encode(), "sha256").hexdigest()

    def drain(self, node: str) -> None:
        """Wait until the history has every event that the node's dead processes sent."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._open.get(node, 0) == 0, timeout=limits.CONDITION_WAIT_S_MAX
            )
        if not done:
            raise PreconditionError(f"collector: node {node} is dead, but its connection has not ended")

    def end(self) -> None:
        """Drop all events from now on, because the nodes and the history are being closed."""
        self._over = True

    def close(self) -> None:
        """Stop listening; safe to call twice."""
        self.end()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: socketserver.StreamRequestHandler) -> None:
        node = ""
        try:
            node = self._greeted(handler)
            while node and (line := handler.rfile.readline(LINE_BYTES_MAX)):
                if not self._over:
                    self._take(node, line)
        except ConnectionError:
            pass  # a killed node's connection may end in a reset
        except Exception as error:
            if not self._over:  # after end, the history or on_flush may already be closed
                # The rest of what the node says would be lost without a trace in this thread.
                self._history.give_up(error)
        finally:
            if node:
                self._count(node, -1)

    def _greeted(self, handler: socketserver.StreamRequestHandler) -> str:
        """Return the node that a connection's first line names and proves to be, "" if it proves nothing."""
        handler.connection.settimeout(HELLO_S_MAX)
        try:
            line = handler.rfile.readline(HELLO_BYTES_MAX)
        except TimeoutError:
            line = b"nothing\n"
        handler.connection.settimeout(None)
        message = _parse(line, "node", "secret") or {}
        node = str(message.get("node", ""))
        if node and hmac.compare_digest(str(message["secret"]).encode(), self.secret_of(node).encode()):
            self._count(node, +1)
            return node
        # A node that is killed while it connects says nothing.
        if line and not self._over and not self._refused.is_set():
            self._refused.set()
            _log.warning(
                "collector at %s: closed a connection from %s:%s, which did not show the secret of a node; "
                "expected the nodes of this run alone; later ones are closed without a line",
                self.address,
                *handler.client_address[:2],
            )
        return ""

    def _take(self, node: str, line: bytes) -> None:
        """Record a line of a node."""
        message = _parse(line, "node", "f")
        if message is not None and message["node"] == node:
            self._record(node, message)
            return
        # The history lacks an event of a node: the run cannot be judged.
        error = f"{node} sent {line[:200]!r}; expected a JSON object with node={node!r} and f"
        self._history.record("collector", OpType.FAIL, LineUnreadable(error=error))

    def _count(self, node: str, change: int) -> None:
        with self._changed:
            self._open[node] = self._open.get(node, 0) + change
            self._changed.notify_all()

    def _record(self, node: str, message: Mapping[str, Any]) -> None:
        f, value = str(message["f"]), message.get("value", {})
        op = self._history.record_line(Source.BROKER, node, OpType.INFO, f, value)
        for _, flush in events_of((op,), Flush):
            self._on_flush(node, flush.path, flush.length)


def _parse(line: bytes, *keys: str) -> Mapping[str, Any] | None:
    """Return the JSON object in the line; None if it is none or lacks one of the keys."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.keys() >= set(keys) else None
