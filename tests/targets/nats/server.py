"""A server for a client's socket, in NATS's protocol, whose answers the test chooses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from harness.launch import Address

ID: Final = "NSERVER"
INFO: Final = b'INFO {"server_id": "' + ID.encode() + b'", "headers": true, "max_payload": 1048576}\r\n'
NO_RESPONDERS: Final = b"NATS/1.0 503\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client published."""

    subject: str
    reply: str
    payload: bytes
    headers: bytes = b""

    @property
    def what(self) -> str:
        """The last word of its subject."""
        return self.subject.rpartition(".")[2]

    @property
    def body(self) -> Any:
        return json.loads(self.payload or b"null")


class Talk:
    """One connection, as the server has it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb")
        self.hello: Mapping[str, Any] = {}
        # The lines of the protocol that came, but for what is published.
        self.lines: list[bytes] = []

    def send(self, *raw: bytes) -> None:
        self._sock.sendall(b"".join(raw))

    def tell(self, asked: Asked, said: object, headers: bytes = b"") -> None:
        """Reply with bytes, or with an object of JSON."""
        payload = said if isinstance(said, bytes) else json.dumps(said).encode()
        sizes = f"{len(headers)} {len(headers) + len(payload)}" if headers else f"{len(payload)}"
        verb = "HMSG" if headers else "MSG"
        self.send(f"{verb} {asked.reply} 1 {sizes}\r\n".encode(), headers, payload, b"\r\n")

    def hang_up(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._file.close()
        self._sock.close()

    def questions(self, pong: bytes) -> Iterator[Asked]:
        """Yield what comes, and answer all else as a server does."""
        while line := self._file.readline().rstrip(b"\r\n"):
            verb, _, rest = line.partition(b" ")
            if verb in (b"PUB", b"HPUB"):
                subject, reply, *sizes = rest.decode().split()
                head = int(sizes[0]) if verb == b"HPUB" else 0
                body = self._file.read(int(sizes[-1]) + 2)[:-2]
                yield Asked(subject=subject, reply=reply, payload=body[head:], headers=body[:head])
                continue
            self.lines.append(line)
            if verb == b"CONNECT":
                self.hello = json.loads(rest)
            if verb == b"PING":
                self.send(pong)


# What a server does with what a client asks.
Serve = Callable[[Talk, Asked], None]


def is_silent(_talk: Talk, _asked: Asked) -> None:
    """Answer nothing."""


def hangs_up(talk: Talk, _asked: Asked) -> None:
    talk.hang_up()


def answers(said: object) -> Serve:
    return lambda talk, asked: talk.tell(asked, said)


def knows_nobody(talk: Talk, asked: Asked) -> None:
    """Answer that nobody listens to the subject."""
    talk.tell(asked, b"", NO_RESPONDERS)


class Served:
    """A server, its address, and every connection that it had."""

    def __init__(self, serve: Serve, greeting: bytes, pong: bytes) -> None:
        self._serve, self._greeting, self._pong = serve, greeting, pong
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(host="127.0.0.1", port=self._listener.getsockname()[1])
        self.talks: list[Talk] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            talk = Talk(sock)
            self.talks.append(talk)
            self._threads.append(threading.Thread(target=self._answer, args=(talk,)))
            self._threads[-1].start()

    def _answer(self, talk: Talk) -> None:
        with suppress(OSError):
            talk.send(self._greeting)
            for asked in talk.questions(self._pong):
                self._serve(talk, asked)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for talk in self.talks:
            talk.hang_up()
        for thread in self._threads[1:]:
            thread.join()
        for talk in self.talks:
            talk.close()


@contextmanager
def server(serve: Serve = is_silent, *, greeting: bytes = INFO, pong: bytes = b"PONG\r\n") -> Iterator[Served]:
    """
    Yield a server on loopback.

    Args:
        greeting: what it says first.
        pong: what it answers to a PING.
    """
    with closing(Served(serve, greeting, pong)) as served:
        yield served


@contextmanager
def servers(serves: Mapping[str, Serve]) -> Iterator[dict[str, Address]]:
    """Yield the addresses of servers that do this, by their names."""
    with ExitStack() as all_of_them:
        yield {name: all_of_them.enter_context(server(serve)).address for name, serve in serves.items()}


@contextmanager
def nobody() -> Iterator[Address]:
    """Yield an address where every connection is refused."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield Address(host="127.0.0.1", port=silent.getsockname()[1])
