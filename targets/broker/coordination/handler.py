"""
kazoo's handler, changed so that ZooKeeper's order is kept and asking never blocks.

kazoo passes watches and results to two threads; here one queue takes both. kazoo links a result's callback after
it sends the request; here before. kazoo counts unsent requests in a socket's buffer; here in a counter. kazoo
waits for a connection as long as a session lasts; here a few seconds.
"""

from __future__ import annotations

import os
import queue
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

# Source:  Apache Kafka 1.1, KafkaConfig: zookeeper.connection.timeout.ms, 6 s in its server.properties.
CONNECTED_S_MAX: Final = 6.0


class _Forward(queue.Queue[Any]):
    """A queue that forwards its work to another queue; only kazoo's stop mark stays here."""

    def __init__(self, to: queue.Queue[Any]) -> None:
        super().__init__()
        self._to = to

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        target = super().put if not callable(item) else self._to.put
        target(item, block, timeout)


class _WakeUps:
    """
    Both ends of kazoo's wake-up channel: a count of the requests that wait to be sent.

    kazoo writes one byte for each into a socket pair, whose buffer holds a few hundred: without a connection they
    are not read, and the next ask blocks the broker's own thread until ZooKeeper is back.
    """

    def __init__(self) -> None:
        self._counter = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def fileno(self) -> int:
        return self._counter

    def send(self, data: bytes) -> int:
        os.eventfd_write(self._counter, len(data))
        return len(data)

    def recv(self, _size: int) -> bytes:
        os.eventfd_read(self._counter)  # raises BlockingIOError when the count is 0, as an empty socket would
        return b"\0"

    def close(self) -> None:
        # kazoo closes both ends, which are one object here.
        counter, self._counter = self._counter, -1
        if counter >= 0:
            os.close(counter)


def rest(seconds: float) -> None:
    """
    Let time pass on a thread of kazoo's, by a relative wait.

    time.sleep waits for an absolute time of the monotonic clock. Where a preloaded libfaketime leaves that clock
    alone it compares the time with the wall clock's, and fails with EINVAL.
    """
    select.select((), (), (), max(0.0, seconds))


class OneQueueHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Run watches and completions on one thread, in the order in which the connection read them."""

    sleep_func = staticmethod(rest)

    def __init__(self) -> None:
        super().__init__()
        self.callback_queue = _Forward(self.completion_queue)
        self._asking = threading.local()

    @contextmanager
    def linked(self, callback: Callable[[Any], None]) -> Iterator[None]:
        """Link the callback to the result that is created meanwhile, before its request can be sent."""
        self._asking.callback = callback
        try:
            yield
        finally:
            self._asking.callback = None

    def async_result(self) -> Any:
        """Create a result with its callback; linked later, it could run after a watch that was read after it."""
        result = super().async_result()
        callback = getattr(self._asking, "callback", None)
        if callback is not None:
            result.rawlink(callback)
        return result

    def select(self, readers: Sequence[Any], writers: Sequence[Any], others: Sequence[Any], timeout: float) -> Any:
        """
        Wait for sockets; for the answer that makes a connection no longer than CONNECTED_S_MAX.

        kazoo waits for it as long as a session lasts. A server that is still starting may accept a connection,
        read what is asked and never answer. An established connection is waited for by two readers.
        """
        waits = min(timeout, CONNECTED_S_MAX) if len(readers) == 1 else timeout
        return super().select(readers, writers, others, waits)

    def create_socket_pair(self) -> tuple[_WakeUps, _WakeUps]:
        """Return the ends that kazoo reads from and writes to."""
        wake_ups = _WakeUps()
        return wake_ups, wake_ups
