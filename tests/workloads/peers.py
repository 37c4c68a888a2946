"""A server for a client's socket whose answers the test chooses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Answer = Callable[[bytes], bytes | None]


@contextmanager
def peer(answer: Answer) -> Iterator[str]:
    """
    Accept connections one by one on loopback and answer each of their frames; yield "host:port".

    Args:
        answer: receives a request without its length; returns the raw bytes to send, or None to hang up.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer))
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(server: socket.socket, answer: Answer) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client:
            _talk(client, answer)


def _talk(client: socket.socket, answer: Answer) -> None:
    while (head := _exactly(client, 4)) is not None:
        frame = _exactly(client, int.from_bytes(head))
        said = None if frame is None else answer(frame)
        if said is None:
            return
        client.sendall(said)


def _exactly(client: socket.socket, count: int) -> bytes | None:
    found = b""
    while len(found) < count:
        try:
            more = client.recv(count - len(found))
        except OSError:
            return None
        if not more:
            return None
        found += more
    return found


def framed(body: bytes) -> bytes:
    """Return a body preceded by its length."""
    return len(body).to_bytes(4) + body
