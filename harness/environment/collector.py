"""
The collector: a TCP listener that receives the nodes' events, line by line, and records them in the history.

The kernel still delivers what a node sent before it was killed. `drain` waits for that, so that the history has
the events of a dead node before a fault changes its files.
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from harness import limits
from harness.events import Flush, LineUnreadable
from harness.history.file import History
from harness.launch import Address
from harness.model import OpType, PreconditionError, Source, events_of

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
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
            while line := handler.rfile.readline(LINE_BYTES_MAX):
                if self._over:
                    continue
                message = _parse(line)
                if message is None:
                    # The history lacks an event of a node: the run cannot be judged.
                    error = f"a node sent {line[:200]!r}; expected a JSON object with node and f"
                    self._history.record("collector", OpType.FAIL, LineUnreadable(error=error))
                    continue
                if not node:
                    node = str(message["node"])
                    self._count(node, +1)
                self._record(node, message)
        except ConnectionError:
            pass  # a killed node's connection may end in a reset
        except Exception as error:
            if not self._over:  # after end, the history or on_flush may already be closed
                # The rest of what the node says would be lost without a trace in this thread.
                self._history.give_up(error)
        finally:
            if node:
                self._count(node, -1)

    def _count(self, node: str, change: int) -> None:
        with self._changed:
            self._open[node] = self._open.get(node, 0) + change
            self._changed.notify_all()

    def _record(self, node: str, message: Mapping[str, Any]) -> None:
        f, value = str(message["f"]), message.get("value", {})
        op = self._history.record_line(Source.BROKER, node, OpType.INFO, f, value)
        for _, flush in events_of((op,), Flush):
            self._on_flush(node, flush.path, flush.length)


def _parse(line: bytes) -> Mapping[str, Any] | None:
    try:
        message = json.loads(line)
        return message if isinstance(message, dict) and {"node", "f"} <= message.keys() else None
    except ValueError:
        return None
