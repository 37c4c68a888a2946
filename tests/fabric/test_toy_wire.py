"""A wire that is not Kafka's, with a head of nine bytes and an address for each pair; and a target without one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from harness.fabric.fabric import Fabric
from harness.model import UsageError
from harness.target.wire import Between, Wire
from tests.events.as_recorded import as_recorded
from tests.fabric.nodes import LOOPBACK, WAIT_S, Connection, Node, until
from tests.fabric.toy import ToyWire, frame


class Pair:
    """A fabric with B behind it, whose address for A is another than that for C."""

    def __init__(self, fabric: Fabric, node: Node, record: list[tuple[str, dict[str, Any]]]) -> None:
        self.fabric, self.record, self._node = fabric, record, node
        for number, name in enumerate("ABC"):
            fabric.add_node(name, number)
        self._addresses = {src: fabric.add_link(Between.NODES, node.address, src=src, dst="B") for src in "AC"}
        self.open: list[Connection] = []

    def dial(self, src: str) -> tuple[Connection, Connection]:
        address = self._addresses[src]
        near = Connection(socket.create_connection((address.host, address.port), WAIT_S))
        self.open += (near, far := self._node.accept())
        return near, far


@contextmanager
def pair(wire: Wire | None) -> Iterator[Pair]:
    record: list[tuple[str, dict[str, Any]]] = []
    with (
        Fabric(LOOPBACK, lambda event: record.append(as_recorded(event)), target="toy", wire=wire) as fabric,
        closing(Node()) as node,
    ):
        made = Pair(fabric, node, record)
        try:
            yield made
        finally:
            for connection in made.open:
                connection.close()


def test_address_that_was_called_names_the_sender_and_its_fetch_alone_is_held() -> None:
    with pair(ToyWire()) as made:
        (near_a, far_a), (near_c, far_c) = made.dial("A"), made.dial("C")
        hold = made.fabric.hold("fetch", "A", "B", "request", 3)
        for near in (near_a, near_c):
            near.send(frame(b"C", 2), frame(b"C", 3))
        far_c.expect(frame(b"C", 2), frame(b"C", 3))
        far_a.expect(frame(b"C", 2))
        assert (("A", "B"), 3) == ((held := hold.wait(WAIT_S)).link, held.offset)
        assert far_a.silent()
        made.fabric.release(hold)
        far_a.expect(frame(b"C", 3))
        fetches = [(value["link"], value["offset"]) for f, value in made.record if f == "fetch"]
        assert [(["A", "B"], 2), (["A", "B"], 3)] == [each for each in fetches if each[0] == ["A", "B"]]


def test_message_of_the_targets_own_is_delayed_by_its_name() -> None:
    with pair(ToyWire()) as made:
        near, far = made.dial("A")
        delay = made.fabric.delay("beg", "A", "*", "request", 3600)
        near.send(frame(b"C", 2), frame(b"B"))
        far.expect(frame(b"C", 2))
        until(lambda: any(f == "delayed" for f, _ in made.record), "the other is late")
        made.fabric.heal(delay)
        far.expect(frame(b"B"))


def test_stream_that_is_no_frames_passes_unread_and_is_told_of() -> None:
    with pair(ToyWire()) as made:
        near, far = made.dial("A")
        near.send(frame(b"C", 2), b"GET / HTTP/1.1")
        far.expect(frame(b"C", 2), b"GET / HTTP/1.1")
        assert ["kind b'G'; expected C, A or B"] == [v["error"] for f, v in made.record if f == "unreadable"]


def test_links_of_a_target_without_a_wire_are_cut_and_nothing_else_of_them_is_known() -> None:
    with pair(None) as made:
        (near_a, far_a), (near_c, far_c) = made.dial("A"), made.dial("C")
        near_a.send(b"any")
        far_a.expect(b"any")
        with pytest.raises(UsageError, match="unknown word 'beg'"):
            made.fabric.hold("beg", "A", "B", "request")
        cut = made.fabric.cut("A", "B")
        near_a.send(b"lost")
        near_c.send(b"kept")
        far_c.expect(b"kept")
        until(lambda: cut.frames_lost == 1, "what A sends is lost")
        made.fabric.heal(cut)
        near_a.expect_reset()
        assert [] == [f for f, _ in made.record if f == "unreadable"]


def test_link_of_a_pair_needs_its_sender_and_a_second_listener_its_name() -> None:
    with pair(ToyWire()) as made, closing(Node()) as node:
        with pytest.raises(UsageError, match=r"link from node to node from \? to B; expected one of target toy"):
            made.fabric.add_link(Between.NODES, node.address, dst="B")
        address = made.fabric.add_link(Between.NODES, node.address, src="A", dst="B", listener="office")
        near = Connection(socket.create_connection((address.host, address.port), WAIT_S))
        far = node.accept()
        with closing(near), closing(far):
            near.send(frame(b"B"))
            far.expect(frame(b"B"))
