"""A broker or controller for a client's socket, in the remoting protocol, whose answers the test chooses."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from harness.launch import Address
from targets.rocketmq.wire.frames import Code

_HEAD: Final = struct.Struct(">iI")


def frame(head: object, body: bytes = b"") -> bytes:
    """Return a frame with this head, as JSON or as bytes."""
    spelled = head if isinstance(head, bytes) else json.dumps(head).encode()
    return _HEAD.pack(4 + len(spelled) + len(body), len(spelled)) + spelled + body


def answer(
    number: int,
    code: int = 0,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    remark: str | None = None,
) -> bytes:
    """Return the answer to a request."""
    head = {"code": code, "flag": 1, "language": "JAVA", "opaque": number, "version": 501}
    return frame({**head, "extFields": fields, "remark": remark}, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client asked."""

    head: Mapping[str, Any]
    body: bytes

    @property
    def what(self) -> str:
        return Code(self.head["code"]).name

    @property
    def number(self) -> int:
        return int(self.head["opaque"])

    @property
    def fields(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.head["extFields"]
        return found


class Talk:
    """One connection, as the server has it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb")

    def send(self, *raw: bytes) -> None:
        self._sock.sendall(b"".join(raw))

    def hang_up(self) -> None:
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._file.close()
        self._sock.close()

    def questions(self) -> Iterator[Asked]:
        while len(head := self._file.read(_HEAD.size)) == _HEAD.size:
            length, size = _HEAD.unpack(head)
            found = self._file.read(length - 4)
            yield Asked(head=json.loads(found[:size]), body=found[size:])


# What a server does with what a client asks.
Serve = Callable[[Talk, Asked], None]


def is_silent(_talk: Talk, _asked: Asked) -> None:
    """Answer nothing."""


def hangs_up(talk: Talk, _asked: Asked) -> None:
    talk.hang_up()


def answers(
    code: int = 0, fields: Mapping[str, object] | None = None, body: bytes = b"", remark: str | None = None
) -> Serve:
    return lambda talk, asked: talk.send(answer(asked.number, code, fields, body, remark))


def says(raw: bytes) -> Serve:
    """Return what sends these bytes whatever it is asked."""
    return lambda talk, _asked: talk.send(raw)


def in_turn(*serves: Serve) -> Serve:
    """Return what does one of these after the other, the last one again and again."""
    left = list(serves)

    def serve(talk: Talk, asked: Asked) -> None:
        chosen = left.pop(0) if len(left) > 1 else left[0]
        chosen(talk, asked)

    return serve


def unless(down: threading.Event, serve: Serve) -> Serve:
    """Return what hangs up while the event is set."""
    return lambda talk, asked: hangs_up(talk, asked) if down.is_set() else serve(talk, asked)


def by_code(serves: Mapping[str, Serve]) -> Serve:
    """Return what does with each kind of request what is said for it."""
    return lambda talk, asked: serves[asked.what](talk, asked)


class Served:
    """A server, its address, every connection that it had, and all that it was asked."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(host="127.0.0.1", port=self._listener.getsockname()[1])
        self.talks: list[Talk] = []
        self.asked: list[Asked] = []
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
            for asked in talk.questions():
                self.asked.append(asked)
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
def server(serve: Serve = is_silent) -> Iterator[Served]:
    """Yield a server on loopback."""
    with closing(Served(serve)) as served:
        yield served


@contextmanager
def nobody() -> Iterator[Address]:
    """Yield an address where every connection is refused."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield Address(host="127.0.0.1", port=silent.getsockname()[1])


# --- what brokers and controllers say --------------------------------------------------------------------------
def epoch_cache(number: int, end: int, *starts: tuple[int, int]) -> bytes:
    """Return what a broker says of its log; its number is 0 while it acts as master."""
    entries = [{"epoch": epoch, "startOffset": start, "endOffset": end} for epoch, start in starts]
    cache = {"clusterName": "fencepost", "brokerName": "brokers", "brokerId": number, "maxOffset": end}
    return json.dumps({**cache, "epochList": entries}).encode()


def replica(number: int, host: str, *, alive: bool = True) -> dict[str, object]:
    return {"brokerName": "brokers", "brokerId": number, "brokerAddress": f"{host}:10911", "alive": alive}


def controller(
    replicas: Mapping[str, int],
    *,
    master: int | None = 1,
    epoch: int = 3,
    in_sync: Mapping[int, object] | None = None,
    dead: tuple[int, ...] = (),
) -> Serve:
    """
    Return a controller that leads.

    Args:
        replicas: host -> number of the broker there.
        in_sync: the numbers of the SyncStateSet; None: all.
        dead: the numbers of those whose heartbeats do not come.
    """
    members = {*replicas.values()} if in_sync is None else {*in_sync}
    hosts = {number: host for host, number in replicas.items()}
    fields: dict[str, object] = {"masterEpoch": str(epoch)}
    if master is not None:
        fields |= {"masterBrokerId": str(master), "masterAddress": f"{hosts[master]}:10911"}
    told = {number: replica(number, host, alive=number not in dead) for number, host in hosts.items()}
    table = {
        "inSyncReplicas": [each for number, each in told.items() if number in members],
        "notInSyncReplicas": [each for number, each in told.items() if number not in members],
    }
    of_set = {"syncStateSet": sorted(members), "syncStateSetEpoch": 7}
    data = {"replicasInfoTable": {"brokers": table}}
    return by_code(
        {
            "GetReplicaInfo": answers(fields=fields, body=json.dumps(of_set).encode()),
            "GetSyncStateData": answers(body=json.dumps(data).encode()),
        }
    )
