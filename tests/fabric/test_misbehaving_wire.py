"""Whatever the wire of a target does, bytes go on, in bounded time and memory, and the run cannot be judged."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from harness import events
from harness.fabric.fabric import Fabric
from harness.fabric.limits import HEAD_BYTES
from harness.target.wire import (
    UNKNOWN,
    Between,
    Direction,
    Hearing,
    Link,
    LinkKind,
    Message,
    Reading,
    Seen,
    Sender,
    Stands,
    Word,
)
from tests.events.as_recorded import as_recorded
from tests.fabric.nodes import LOOPBACK, WAIT_S, Connection, Node, until

SEEN = Seen(link=("A", "B"), api="fetch", direction=Direction.REQUEST)
WIRE_CALL_S = 0.05


class Wire:
    """A wire of lines that says what the test has it say."""

    links: Sequence[LinkKind] = (LinkKind(name="nodes", between=Between.NODES, sender=Sender.FRAMES),)
    messages: Collection[str] = ()

    def __init__(self, **does: Callable[..., Any]) -> None:
        self._does = does

    def stands(self, rules: Mapping[str, str]) -> Mapping[Word, Stands]:
        return {}

    def hear(self, nodes: Mapping[int, str]) -> Hearing:
        return self._does["hear"]() if "hear" in self._does else self

    def reading(self, kind: LinkKind, link: Link) -> Reading | None:
        return self._does["reading"]() if "reading" in self._does else self

    def size(self, buffer: bytes, offset: int, direction: Direction) -> int:
        if "size" in self._does:
            return self._does["size"](buffer, offset)
        return buffer.find(b"\n", offset) + 1 - offset if b"\n" in buffer[offset:] else 0

    def read(self, frame: bytes, direction: Direction) -> Message:
        if "read" in self._does:
            return self._does["read"](frame)
        return Message(seen=Seen(link=("A", "B"), api="fetch", direction=direction, correlation=1))

    def sent_again(self, correlation: int) -> None:
        if "sent_again" in self._does:
            self._does["sent_again"]()


class Net:
    """One connection through a fabric with this wire, and what was recorded."""

    def __init__(self, fabric: Fabric, near: Connection, far: Connection, record: list[tuple[str, Any]]) -> None:
        self.fabric, self.near, self.far, self.record = fabric, near, far, record

    def passes(self, data: bytes) -> None:
        """Send bytes in both directions, and expect each on the other side."""
        for sender, receiver in ((self.near, self.far), (self.far, self.near)):
            sending = threading.Thread(target=sender.send, args=(data,))
            sending.start()
            receiver.expect(data)
            sending.join()

    def failures(self) -> list[str]:
        """Return why nothing more was read."""
        return [value["error"] for f, value in self.record if f == "unreadable"]


@contextmanager
def net(wire: Wire, *, call_s: float = WAIT_S) -> Iterator[Net]:
    record: list[tuple[str, Any]] = []
    fabric = Fabric(
        LOOPBACK, lambda event: record.append(as_recorded(event)), target="toy", wire=wire, wire_call_s=call_s
    )
    with fabric, closing(Node()) as node:
        fabric.add_node("A", 1)
        fabric.add_node("B", 2)
        address = fabric.add_link(Between.NODES, node.address, dst="B")
        near = Connection(socket.create_connection((address.host, address.port), WAIT_S))
        far = node.accept()
        with closing(near), closing(far):
            yield Net(fabric, near, far, record)


def raises(*_: object) -> Any:
    raise RuntimeError("a bug of the target")


def says(value: Any) -> Callable[..., Any]:
    return lambda *_: value


def seen(**fields: Any) -> Seen:
    return Seen(**{"link": ("A", "B"), "api": "fetch", "direction": Direction.REQUEST, **fields})


def message(*found: Any, of: Seen = SEEN) -> Callable[..., Any]:
    return says(Message(seen=of, events=found))


@pytest.mark.parametrize(
    ("wire", "failure"),
    [
        ({"hear": raises}, "hear raised a bug of the target"),
        ({"reading": raises}, "reading raised a bug of the target"),
        ({"size": raises}, "size raised a bug of the target"),
        ({"size": says(-4)}, "size said -4 of a frame; expected a number from 0 to"),
        ({"size": says(1 << 40)}, "size said 1099511627776 of a frame"),
        ({"size": says(True)}, "size said True of a frame"),
        ({"size": says("3")}, "size said '3' of a frame"),
        ({"read": raises}, "read raised a bug of the target"),
        ({"read": says(None)}, "read said None; expected a Message"),
        ({"read": message(of=seen(link="AB"))}, "link 'AB'; expected two names"),
        ({"read": message(of=seen(api=7))}, "7, <Direction"),
        ({"read": message(of=seen(version="1"))}, "version '1', number -1; expected two numbers"),
        ({"read": message(of=seen(offsets=(1,)))}, "offset 1; expected a topic and a number"),
        ({"read": message(of=seen(offsets=[]))}, "list of offsets; expected"),
        ({"read": message(events.Close(link=("A", "B"), connections=1))}, "event Close"),
        (
            {"read": message(events.Fetch(link=("A", "B"), topic=5, partition=0, offset=1))},  # type: ignore[arg-type]
            "event Fetch: key 'topic' is 5; expected a string",
        ),
        ({"read": says(Message(seen=SEEN, events=itertools.count()))}, "count of events"),  # type: ignore[arg-type]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_stream_goes_on_and_the_part_is_named_when_a_wire_misbehaves(wire: dict[str, Any], failure: str) -> None:
    with net(Wire(**wire)) as made:
        made.passes(b"one\ntwo\nthree")
        made.passes(b"four\n")
        assert 1 == len(made.failures())
        assert made.failures()[0].startswith("target toy, wire: ")
        assert failure in made.failures()[0]


def test_wire_that_splits_nothing_is_asked_no_more_once_a_head_would_be_there() -> None:
    asked: list[int] = []

    def never(buffer: bytes, offset: int) -> int:
        asked.append(len(buffer) - offset)
        return 0

    with net(Wire(size=never)) as made:
        made.passes(b"x" * 20 * HEAD_BYTES)
        assert f"expected to find a frame in {HEAD_BYTES}" in made.failures()[0]
        # One read of a socket may bring more than the head.
        assert max(asked) < 20 * HEAD_BYTES


def test_bytes_of_a_wire_that_splits_nothing_go_on_at_the_end_of_a_side() -> None:
    with net(Wire(size=says(0))) as made:
        made.near.send(b"a few")
        made.near.sock.shutdown(socket.SHUT_WR)
        made.far.expect(b"a few")
        made.far.expect_end()
        assert [] == made.failures()


@pytest.mark.parametrize("part", ["hear", "reading", "size", "read"])
def test_wire_that_never_returns_is_interrupted(part: str) -> None:
    def spins(*_: object) -> Any:
        for _ in itertools.count():
            pass

    with net(Wire(**{part: spins}), call_s=WIRE_CALL_S) as made:
        made.passes(b"one\ntwo\n")
        assert [f"target toy, wire: {part} did not return in time"] == made.failures()


def test_wire_that_catches_whatever_is_raised_is_interrupted_between_its_loops() -> None:
    caught: list[BaseException] = []

    def stubborn(*_: object) -> Any:
        while not caught:
            try:
                for _ in itertools.count():
                    pass
            except BaseException as error:  # what no target should do
                caught.append(error)
        return "nonsense"

    with net(Wire(read=stubborn), call_s=WIRE_CALL_S) as made:
        made.passes(b"one\ntwo\n")
        assert 1 == len(made.failures())


def test_rules_of_links_are_lifted_although_the_wire_has_failed() -> None:
    with net(Wire(read=raises)) as made:
        made.passes(b"one\n")
        hold = made.fabric.hold("*", "*", "*", "request")
        made.near.send(b"two\n")
        until(lambda: hold.held, "what is not read is held by a rule for all")
        made.fabric.release(hold)
        made.far.expect(b"two\n")
        cut = made.fabric.cut(UNKNOWN, "B", close=True)
        with suppress(ConnectionResetError):
            made.near.expect_reset()
        made.fabric.heal(cut)


def test_request_is_delivered_twice_although_the_wire_cannot_expect_two_answers() -> None:
    with net(Wire(sent_again=raises)) as made:
        made.fabric.double("fetch", "A", "B")
        made.near.send(b"one\n")
        made.far.expect(b"one\none\n")
        made.passes(b"two\n")
        assert ["target toy, wire: sent_again raised a bug of the target"] == made.failures()
