"""The fabric from its caller's side: names, threads, frame sizes, and a close that leaves nothing behind."""

from __future__ import annotations

import gc
import hashlib
import os
import socket
import threading

import pytest

from harness.events import Event
from harness.fabric.fabric import Fabric
from harness.fabric.limits import WHOLE_BYTES_MAX
from harness.launch import Address
from harness.model import PreconditionError, UsageError
from harness.target.wire import Between
from tests.fabric.nodes import LOOPBACK, WAIT_S, WIRE, Connection, Node, World, until, world
from tests.targets.kafka_family.wire import wire

NOWHERE = Address(host=LOOPBACK, port=1)


def open_sockets() -> int:
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum("socket:" in os.readlink(link) for link in links if os.path.lexists(link))


@pytest.mark.parametrize("state", ["quiet", "held", "cut", "connecting"])
def test_close_leaves_no_thread_and_no_socket(state: str) -> None:
    gc.collect()
    threads, sockets = set(threading.enumerate()), open_sockets()
    with world() as net:
        near, _ = net.known()
        if state == "held":
            hold = net.fabric.hold("*", "*", "*", "request")
            near.send(wire.fetch(1))
            hold.wait(WAIT_S)
        elif state == "cut":
            cut = net.fabric.cut("*", "*")
            near.send(wire.fetch(1))
            until(lambda: cut.frames_lost == 1, "a frame is lost")
        elif state == "connecting":
            for _ in range(10):
                net.dial()
        net.fabric.close()
        net.fabric.close()
    assert set(threading.enumerate()) <= threads
    assert sockets == open_sockets()


def test_close_leaves_no_socket_when_connections_come_with_it() -> None:
    gc.collect()
    sockets = open_sockets()
    with world() as net:
        closer = threading.Thread(target=net.fabric.close)
        with net.stopped():
            for _ in range(5):
                net.dial()
            closer.start()
            until(lambda: net.fabric._exchange is None, "the fabric is being closed")
        closer.join(WAIT_S)
    assert sockets == open_sockets()


def test_close_wakes_who_waits_for_a_hold(net: World) -> None:
    hold = net.fabric.hold("fetch", "A", "B", "request")
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            hold.wait(WAIT_S)
        except PreconditionError as error:
            caught.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    net.fabric.close()
    waiter.join(WAIT_S)
    assert 1 == len(caught)


def test_failure_to_record_is_raised_by_the_next_call_and_by_close() -> None:
    def fail(event: Event) -> None:
        raise OSError(28, f"no space for {event}")

    node = Node()
    fabric = Fabric(LOOPBACK, fail, target="kafka", wire=WIRE)
    fabric.start()
    fabric.add_node("B", 2)
    address = fabric.add_link(Between.NODES, node.address, dst="B")
    near = Connection(socket.create_connection((address.host, address.port)))
    near.send(wire.fetch(1, client_id="broker-2-fetcher"))
    near.expect_end()
    with pytest.raises(RuntimeError, match="no space for Fetch"):
        fabric.connections("*", "*")
    with pytest.raises(RuntimeError, match="no space for Fetch"):
        fabric.close()
    near.close()
    node.close()


def test_fabric_can_be_called_from_its_own_thread() -> None:
    counted: list[int] = []
    fabric = Fabric(LOOPBACK, lambda _: counted.append(fabric.connections("*", "*")), target="kafka", wire=WIRE)
    with fabric:
        fabric.cut("*", "*")
    assert [0] == counted


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f.hold("fech", "A", "B", "request"), "unknown word 'fech'.*Did you mean 'fetch'"),
        (lambda f: f.hold("fetch", "A", "X", "request"), "unknown node 'X'"),
        (lambda f: f.hold("fetch", "A", "B", "reply"), "unknown direction 'reply'"),
        (lambda f: f.hold("Produce", "A", "B", "request", 5), "from_offset=5"),
        (lambda f: f.cut("X", "B"), "unknown node 'X'"),
        (lambda f: f.close_links("A", "X"), "unknown node 'X'"),
        (lambda f: f.add_link(Between.METADATA, NOWHERE, src="X", dst="metadata"), "unknown node 'X'"),
        (lambda f: f.add_link(Between.NODES, NOWHERE, src="A", dst="B"), "by what its frames say"),
        (lambda f: f.add_link(Between.CLIENTS, NOWHERE, dst="B"), "link from clients to a node from . to B"),
        (lambda f: f.add_link(Between.NODES, NOWHERE, dst="B", listener="HA"), "link HA from . to B"),
        (lambda f: f.add_node("A", 7), "'A' with number 7 already exists"),
        (lambda f: f.add_node("C", 1), "'C' with number 1 already exists"),
        (lambda f: f.add_node("metadata", 7), "reserved"),
    ],
)
def test_usage_error_names_what_is_wrong(net: World, call: object, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call(net.fabric)  # type: ignore[operator]


def test_usage_error_when_the_address_is_not_of_this_machine() -> None:
    with Fabric("192.0.2.1", lambda _: None, target="kafka", wire=WIRE) as fabric:
        fabric.add_node("A", 1)
        with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1 for \? -> A"):
            fabric.add_link(Between.NODES, NOWHERE, dst="A")


def test_many_and_large_frames_pass_unharmed_both_ways(net: World) -> None:
    near, far = net.known()
    large = wire.request(0, 3, 9, "1", os.urandom(4 * WHOLE_BYTES_MAX))
    small = [wire.fetch(number, correlation=number) for number in range(500)]
    stream = b"".join((*small, large, *small, large, *small))

    def echo() -> None:
        left = len(stream)
        while left:
            data = far.sock.recv(1 << 16)
            far.sock.sendall(data)
            left -= len(data)

    sender = threading.Thread(target=near.send, args=(stream,))
    echoer = threading.Thread(target=echo)
    sender.start()
    echoer.start()
    returned = near.receive(len(stream))
    sender.join(WAIT_S)
    echoer.join(WAIT_S)
    assert hashlib.sha256(stream).digest() == hashlib.sha256(returned).digest()
    assert [] == [value for value in net.values("unreadable") if value["direction"] == "request"]


def test_hold_takes_effect_behind_a_large_frame_that_is_under_way(net: World) -> None:
    near, far = net.known()
    large = wire.request(0, 3, 9, "1", os.urandom(4 * WHOLE_BYTES_MAX))
    near.send(large[: 3 * WHOLE_BYTES_MAX])
    far.expect(large[: 2 * WHOLE_BYTES_MAX])
    hold = net.fabric.hold("*", "*", "*", "request")
    near.send(large[3 * WHOLE_BYTES_MAX :], wire.fetch(1))
    assert "fetch" == hold.wait(WAIT_S).api
    far.expect(large[2 * WHOLE_BYTES_MAX :])
    assert far.silent()


def test_connection_without_frames_passes_unread_and_can_still_be_held(net: World) -> None:
    near, far = net.connect()
    noise = b"\x16\x03\x01\x02\x00" * 100
    near.send(noise)
    far.expect(noise)
    far.send(noise)
    near.expect(noise)
    assert [("?", "B", "?")] == [(*value["link"], value["api"]) for value in net.values("unreadable")]
    hold = net.fabric.hold("*", "*", "B", "answer")
    far.send(b"more")
    assert "?" == hold.wait(WAIT_S).api
    assert near.silent()


def test_node_is_reached_again_when_it_came_back_to_its_address(net: World) -> None:
    net.node.close()
    net.expect_refusal()
    back = Node(port=net.node.address.port)
    net.node = back
    near, far = net.known()
    near.send(wire.fetch(1))
    far.expect(wire.fetch(1))
    back.close()
