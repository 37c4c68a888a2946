"""A Unix socket between the harness and the machine's Docker engine; to close it is to lose the engine."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.cleanup import engine

CHUNK: int = 65_536


@contextmanager
def between(path: Path) -> Iterator[str]:
    """
    Pass on to the engine what comes to a socket at this path; yield the value for DOCKER_HOST.

    At the end of the block every connection is cut, and nobody listens on the socket. The engine is left alone.
    """
    path.unlink(missing_ok=True)
    upstream = engine.address().removeprefix("unix://")
    over, waker = socket.socketpair()
    made: list[threading.Thread] = []

    def accept() -> None:
        while listener in select.select([listener, over], [], [])[0]:
            made.append(threading.Thread(target=_pass_on, args=(listener.accept()[0], upstream, over)))
            made[-1].start()

    with over, waker, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(100)
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"unix://{path}"
        finally:
            waker.sendall(b"x")  # nobody reads it, so that every thread sees it
            accepting.join()
            listener.close()
            for each in made:
                each.join()


def _pass_on(near: socket.socket, upstream: str, over: socket.socket) -> None:
    """Pass on both ways until one side ends, or the test does."""
    with near, socket.socket(socket.AF_UNIX) as far, suppress(ConnectionError):
        far.connect(upstream)
        while True:
            ready = select.select([near, far, over], [], [])[0]
            if over in ready:
                return
            for source, sink in ((near, far), (far, near)):
                if source in ready:
                    data = source.recv(CHUNK)
                    if not data:
                        return
                    sink.sendall(data)
