"""Both ends of a link for tests: a listening node, connections that send and expect frames, a fabric between."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.events import Event
from harness.fabric.fabric import Fabric
from harness.launch import Address
from harness.limits import CONDITION_POLL_S
from harness.target.wire import METADATA, Between
from targets.kafka_family.wire.wire import KafkaWire
from tests.events.as_recorded import as_recorded
from tests.targets.kafka_family.wire import wire

LOOPBACK = "127.0.0.1"
# Long enough for a busy machine; a passing test never waits this long.
WAIT_S = 20.0
WIRE = KafkaWire(lambda _: True, commands=False)


class Connection:
    """A blocking socket that sends and receives frames."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(WAIT_S)

    def send(self, *frames: bytes) -> None:
        self.sock.sendall(b"".join(frames))

    def expect(self, *frames: bytes) -> None:
        """Receive exactly these bytes."""
        expected = b"".join(frames)
        assert expected == self.receive(len(expected))

    def receive(self, size: int) -> bytes:
        """Receive size bytes, or fewer when the connection ends before."""
        found = bytearray()
        while len(found) < size and (data := self.sock.recv(min(size - len(found), 1 << 20))):
            found += data
        return bytes(found)

    def expect_end(self) -> None:
        """Receive the end of the stream."""
        assert self.sock.recv(100) == b""

    def expect_reset(self) -> None:
        """Receive a TCP reset."""
        try:
            data = self.sock.recv(100)
        except ConnectionResetError:
            return
        raise AssertionError(f"received {data!r}; expected a reset")

    def silent(self) -> bool:
        """Return whether there is nothing to read now, neither bytes nor an end."""
        return not select.select([self.sock], [], [], 0)[0]

    def close(self) -> None:
        self.sock.close()

    def kill(self) -> None:
        """Close with a reset, as the kernel does for a killed process that had unread bytes."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Node:
    """A listener behind the fabric; connections are accepted one by one."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server((LOOPBACK, port))
        self._listener.settimeout(WAIT_S)
        self.address = Address(host=LOOPBACK, port=self._listener.getsockname()[1])

    def accept(self) -> Connection:
        return Connection(self._listener.accept()[0])

    def close(self) -> None:
        self._listener.close()


@dataclass
class World:
    """A fabric with brokers A (id 1) and B (id 2), B's node and ZooKeeper behind it, and the recorded events."""

    fabric: Fabric
    node: Node
    address: Address
    zookeeper: Node
    zookeeper_address: Address
    record: list[tuple[str, dict[str, Any]]]
    gate: threading.Event
    open: list[Connection] = field(default_factory=list)

    def connect(self) -> tuple[Connection, Connection]:
        """Dial B through the fabric, and return the dialling end and B's end."""
        return self._connect(self.address, self.node)

    def connect_zookeeper(self) -> tuple[Connection, Connection]:
        """Dial ZooKeeper as A, and return A's end and ZooKeeper's end."""
        return self._connect(self.zookeeper_address, self.zookeeper)

    def dial(self) -> Connection:
        """Dial B through the fabric, without accepting the connection at B."""
        return self.keep(Connection(socket.create_connection((self.address.host, self.address.port), WAIT_S)))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Block the fabric's thread inside a call, so that all that happens meanwhile reaches it at once."""
        self.gate.clear()
        before = len(self.record)
        caller = threading.Thread(target=self.fabric.close_links, args=("A", "A"))
        caller.start()
        try:
            until(lambda: len(self.record) > before, "the fabric's thread is in the call")
            yield
        finally:
            self.gate.set()
            caller.join(WAIT_S)

    def expect_refusal(self) -> None:
        """Dial B, and expect a reset, during the connect or right after it."""
        try:
            self.dial().expect_reset()
        except ConnectionResetError:
            return

    def known(self, client_id: str = "broker-1-fetcher") -> tuple[Connection, Connection]:
        """Dial B, and pass one request and its answer, so that the fabric knows the link."""
        near, far = self.connect()
        first = wire.request(18, 0, 0, client_id)
        near.send(first)
        far.expect(first)
        far.send(wire.answer(0))
        near.expect(wire.answer(0))
        return near, far

    def keep(self, connection: Connection) -> Connection:
        self.open.append(connection)
        return connection

    def values(self, f: str) -> list[dict[str, Any]]:
        return [value for name, value in self.record if name == f]

    def _connect(self, address: Address, node: Node) -> tuple[Connection, Connection]:
        near = self.keep(Connection(socket.create_connection((address.host, address.port), WAIT_S)))
        return near, self.keep(node.accept())


@contextmanager
def world() -> Iterator[World]:
    """Start a fabric and the nodes behind it; close them all at the end."""
    record: list[tuple[str, dict[str, Any]]] = []
    node, zookeeper = Node(), Node()
    gate = threading.Event()
    gate.set()

    def note(event: Event) -> None:
        record.append(as_recorded(event))
        gate.wait(WAIT_S)

    fabric = Fabric(LOOPBACK, note, target="kafka", wire=WIRE)
    fabric.start()
    try:
        fabric.add_node("A", 1)
        fabric.add_node("B", 2)
        made = World(
            fabric=fabric,
            node=node,
            address=fabric.add_link(Between.NODES, node.address, dst="B"),
            zookeeper=zookeeper,
            zookeeper_address=fabric.add_link(Between.METADATA, zookeeper.address, src="A", dst=METADATA),
            record=record,
            gate=gate,
        )
        try:
            yield made
        finally:
            for connection in made.open:
                connection.close()
    finally:
        fabric.close()
        node.close()
        zookeeper.close()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds; fail with its description after WAIT_S."""
    tick = threading.Event()
    for _ in range(int(WAIT_S / CONDITION_POLL_S)):
        if condition():
            return
        tick.wait(CONDITION_POLL_S)
    raise AssertionError(f"{what}: not within {WAIT_S} s")
