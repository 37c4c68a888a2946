"""
What kazoo runs on, so that ZooKeeper's order is kept and whoever asks is never blocked.

kazoo hands watches and results to two threads; here one queue takes both. It links a result's callback after the
request is sent; here before. It counts what waits to be sent in a socket's buffer; here in a number.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler


class _Forward(queue.Queue[Any]):
    """A queue whose work is done by another one; what is no work (kazoo's stop mark) stays here."""

    def __init__(self, to: queue.Queue[Any]) -> None:
        super().__init__()
        self._to = to

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        target = super().put if not callable(item) else self._to.put
        target(item, block, timeout)


class _WakeUps:
    """
    Both ends of what wakes kazoo's thread: one count for each request that waits to be sent.

    kazoo writes a byte for each into a socket pair, which holds a few hundred: with no connection nobody reads
    them, and whoever asks once more, the broker's own thread, blocks until ZooKeeper is back.
    """

    def __init__(self) -> None:
        self._counter = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def fileno(self) -> int:
        return self._counter

    def send(self, data: bytes) -> int:
        os.eventfd_write(self._counter, len(data))
        return len(data)

    def recv(self, _size: int) -> bytes:
        os.eventfd_read(self._counter)  # BlockingIOError when there is none, as a socket would
        return b"\0"

    def close(self) -> None:
        # kazoo closes both ends, and they are one.
        counter, self._counter = self._counter, -1
        if counter >= 0:
            os.close(counter)


class OneQueueHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Run watches and completions on one thread, in the order in which the connection read them."""

    def __init__(self) -> None:
        super().__init__()
        self.callback_queue = _Forward(self.completion_queue)
        self._asking = threading.local()

    @contextmanager
    def linked(self, callback: Callable[[Any], None]) -> Iterator[None]:
        """Link the callback to the result that is made meanwhile, before its request can be sent."""
        self._asking.callback = callback
        try:
            yield
        finally:
            self._asking.callback = None

    def async_result(self) -> Any:
        """Make a result; linked later, it could come behind a watch that was read after it."""
        result = super().async_result()
        callback = getattr(self._asking, "callback", None)
        if callback is not None:
            result.rawlink(callback)
        return result

    def create_socket_pair(self) -> tuple[_WakeUps, _WakeUps]:
        """Give what kazoo reads from and what it writes to."""
        wake_ups = _WakeUps()
        return wake_ups, wake_ups
