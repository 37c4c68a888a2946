"""Where either of two nodes may dial, each frame has the link and the direction of what it is about."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from harness.fabric.core.lanes import ANSWERS, DIRECTIONS, REQUESTS
from harness.fabric.core.lanes import Connection as CoreConnection
from harness.fabric.core.rules import Cut, Link
from harness.fabric.fabric import Fabric
from harness.fabric.limits import WHOLE_BYTES_MAX
from harness.target.wire import Between, Seen
from tests.events.as_recorded import as_recorded
from tests.fabric.core.bench import Bench, Letter
from tests.fabric.nodes import LOOPBACK, WAIT_S, Connection, Node, until
from tests.fabric.toy import ToyWire, frame

AB, BA = ("A", "B"), ("B", "A")
# What a node asks, with a number, and what it answers.
ASKS = [frame(b"C", number) for number in range(9)]
ANSWER = frame(b"A", 0, b"records")
LARGE = WHOLE_BYTES_MAX * 3


class Office:
    """Nodes A and B behind a fabric, and the connections that A dialled; `both` are A's end and B's."""

    def __init__(self, fabric: Fabric, node: Node, record: list[tuple[str, dict[str, Any]]]) -> None:
        self.fabric, self.node, self.record = fabric, node, record
        for number, name in enumerate("ABC"):
            fabric.add_node(name, number)
        self._address = fabric.add_link(Between.NODES, node.address, src="A", dst="B", listener="office")
        self.open: list[Connection] = []

    def dial(self) -> Connection:
        sock = socket.create_connection((self._address.host, self._address.port), WAIT_S)
        self.open.append(near := Connection(sock))
        return near

    def accept(self) -> Connection:
        self.open.append(far := self.node.accept())
        return far

    def both(self) -> tuple[Connection, Connection]:
        """Dial B, and pass a frame each way, so that the fabric has both ends."""
        near = self.dial()
        far = self.accept()
        for one, other in ((near, far), (far, near)):
            one.send(frame(b"B"))
            other.expect(frame(b"B"))
        return near, far

    def lost(self) -> list[Link]:
        """Return the links on which a cut took something, as they are recorded."""
        return [(value["link"][0], value["link"][1]) for f, value in self.record if f == "lost"]


@pytest.fixture
def office() -> Iterator[Office]:
    """Yield a fabric and its nodes; all connections are closed at the end."""
    with opened() as made:
        yield made


@contextmanager
def opened() -> Iterator[Office]:
    record: list[tuple[str, dict[str, Any]]] = []
    with (
        Fabric(LOOPBACK, lambda event: record.append(as_recorded(event)), target="toy", wire=ToyWire()) as fabric,
        closing(Node()) as node,
    ):
        made = Office(fabric, node, record)
        try:
            yield made
        finally:
            for connection in made.open:
                connection.close()


# --- cuts ------------------------------------------------------------------------------------------------------
def test_cut_takes_what_the_other_node_asks_and_what_it_is_answered_and_nothing_else(office: Office) -> None:
    near, far = office.both()
    cut = office.fabric.cut("B", "A")
    far.send(ASKS[1])
    near.send(ANSWER)
    until(lambda: cut.frames_lost == 2, "B's question and A's answer are lost")
    near.send(ASKS[2])
    far.send(ANSWER)
    far.expect(ASKS[2])
    near.expect(ANSWER)
    assert ({BA: 2}, [BA]) == (office.fabric.affected(cut), office.lost())


def test_cut_of_the_node_that_dialled_passes_what_the_other_asks(office: Office) -> None:
    near, far = office.both()
    cut = office.fabric.cut("A", "B")
    near.send(ASKS[1])
    far.send(ANSWER)
    until(lambda: cut.frames_lost == 2, "A's question and B's answer are lost")
    far.send(ASKS[2])
    near.send(ANSWER)
    near.expect(ASKS[2])
    far.expect(ANSWER)
    assert {AB: 2} == office.fabric.affected(cut)


def test_witness_has_each_fetch_on_the_link_of_who_asked(office: Office) -> None:
    near, far = office.both()
    near.send(ASKS[1])
    far.expect(ASKS[1])
    far.send(ASKS[2])
    near.expect(ASKS[2])
    fetches = [(value["link"], value["offset"]) for f, value in office.record if f == "fetch"]
    assert [(["A", "B"], 1), (["B", "A"], 2)] == fetches


def test_pieces_of_a_large_frame_share_the_fate_of_its_head(office: Office) -> None:
    near, far = office.both()
    cut = office.fabric.cut("B", "A")
    large = frame(b"C", 1, b"x" * LARGE)
    # Between two of B's that are lost there is one of its answers, which A gets whole.
    far.send(large, frame(b"A", 0, b"y" * LARGE), large, ANSWER)
    near.expect(frame(b"A", 0, b"y" * LARGE), ANSWER)
    assert cut.frames_lost > 2
    assert ({BA}, near.silent()) == ({*cut.lost}, True)
    near.send(large)
    far.expect(large)


def test_rest_of_a_large_frame_that_began_before_the_cut_is_taken_by_its_link(office: Office) -> None:
    near, far = office.both()
    large = frame(b"C", 1, b"x" * LARGE)
    half = len(large) // 2
    far.send(large[:half])
    near.expect(large[:half])
    other = office.fabric.cut("A", "B")
    far.send(large[half:-1])
    near.expect(large[half:-1])
    cut = office.fabric.cut("B", "A")
    far.send(large[-1:])
    until(lambda: cut.frames_lost == 1, "the last byte is lost")
    assert (0, True) == (other.frames_lost, near.silent())


def test_cut_both_ways_loses_all_and_its_heal_resets_what_is_torn(office: Office) -> None:
    (near, far), (whole, whole_far) = office.both(), office.both()
    cut = office.fabric.cut("A", "B", both_ways=True)
    near.send(ASKS[1], ANSWER)
    far.send(ASKS[1], ANSWER)
    until(lambda: cut.frames_lost == 4, "all frames are lost")
    assert ({AB: 2, BA: 2}, True, True) == (office.fabric.affected(cut), near.silent(), far.silent())
    office.fabric.heal(cut)
    near.expect_reset()
    far.expect_reset()
    whole.send(ASKS[2])
    whole_far.expect(ASKS[2])


@pytest.mark.parametrize("first", [AB, BA])
def test_torn_connection_is_reset_once_neither_of_its_links_is_cut(office: Office, first: Link) -> None:
    near, far = office.both()
    cuts = {link: office.fabric.cut(*link) for link in (AB, BA)}
    (near if first == AB else far).send(ASKS[1])
    until(lambda: cuts[first].frames_lost == 1, "the first link's question is lost")
    office.fabric.heal(cuts.pop(first))
    (last,) = cuts.values()
    (far if first == AB else near).send(ASKS[1])
    until(lambda: last.frames_lost == 1, "the other's is lost: the connection is still there")
    office.fabric.heal(last)
    near.expect_reset()
    far.expect_reset()


@pytest.mark.parametrize("link", [AB, BA, ("*", "A"), ("B", "*")])
def test_cut_that_closes_finds_the_connection_by_either_of_its_links(office: Office, link: Link) -> None:
    near, far = office.both()
    cut = office.fabric.cut(*link, close=True)
    near.expect_reset()
    far.expect_reset()
    taken = {each for each in (AB, BA) if cut.covers(each)}
    assert taken == {*office.fabric.affected(cut)} == {*office.lost()}


def test_cut_that_closes_resets_a_later_connection_at_the_first_frame_of_its_link(office: Office) -> None:
    office.fabric.cut("B", "A", close=True)
    near, far = office.dial(), office.accept()
    near.send(ASKS[1])
    far.expect(ASKS[1])
    far.send(ASKS[1])
    near.expect_reset()
    far.expect_reset()


@pytest.mark.parametrize("link", [AB, BA, ("*", "A"), ("B", "*"), ("A", "*"), ("*", "*")])
def test_links_are_closed_and_counted_by_either_name(office: Office, link: Link) -> None:
    near, far = office.both()
    assert 1 == office.fabric.connections(*link)
    assert 0 == office.fabric.connections("C", "*")
    assert (0, 1) == (office.fabric.close_links("A", "C"), office.fabric.close_links(*link))
    near.expect_reset()
    far.expect_reset()


def test_dead_node_is_silent_while_either_link_to_it_is_cut(office: Office) -> None:
    office.node.close()
    cut = office.fabric.cut("B", "A")
    near = office.dial()
    until(lambda: office.fabric.connections("A", "B") == 1, "the connection is taken")
    assert near.silent()
    office.fabric.heal(cut)
    near.expect_reset()


def test_bytes_that_are_no_frames_are_of_the_node_that_dialled(office: Office) -> None:
    near, far = office.both()
    far.send(ASKS[1])
    near.expect(ASKS[1])
    cut = office.fabric.cut("B", "A")
    far.send(b"GET / HTTP/1.1")
    near.expect(b"GET / HTTP/1.1")
    office.fabric.cut("A", "B")
    far.send(b"lost")
    near.send(b"lost")
    until(lambda: office.lost() == [AB], "the other cut takes it")
    assert (0, True, True) == (cut.frames_lost, near.silent(), far.silent())


# --- holds -----------------------------------------------------------------------------------------------------
def test_hold_stops_what_the_other_node_asks_and_nothing_of_the_one_that_dialled(office: Office) -> None:
    near, far = office.both()
    hold = office.fabric.hold("fetch", "B", "A", "request")
    near.send(ASKS[1])
    far.expect(ASKS[1])
    far.send(ANSWER, ASKS[2])
    near.expect(ANSWER)
    held = hold.wait(WAIT_S)
    assert (BA, 2, True) == (held.link, held.offset, near.silent())
    office.fabric.release(hold)
    near.expect(ASKS[2])


def test_hold_of_answers_stops_those_to_the_node_that_asked(office: Office) -> None:
    near, far = office.both()
    hold = office.fabric.hold("fetch", "B", "A", "answer")
    far.send(ANSWER, ASKS[1])
    near.expect(ANSWER, ASKS[1])
    near.send(ASKS[2], ANSWER)
    far.expect(ASKS[2])
    assert BA == hold.wait(WAIT_S).link
    assert far.silent()
    office.fabric.release(hold)
    far.expect(ANSWER)


# --- the core --------------------------------------------------------------------------------------------------
class SharedBench(Bench):
    """A driver of the core with a connection between A and B that A dialled."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = CoreConnection(AB, shared=True)
        self.core.connections[self.connection] = None

    def passes(self, direction: int, link: Link | None) -> bool:
        """Send a frame of this link, and return whether it arrived."""
        before = len(self.arrived)
        seen = Seen(link=link or AB, api="fetch", direction=DIRECTIONS[direction])
        self.connection.lanes[direction].frames.append(Letter(self.now_ns, link=link, seen=seen))
        self.pump(self.connection, direction)
        return len(self.arrived) > before


@pytest.mark.parametrize("direction", [REQUESTS, ANSWERS])
def test_share_is_counted_by_the_link_of_the_frame(direction: int) -> None:
    bench = SharedBench()
    cut = Cut(links=(BA,), close=True, of_1000=300, seed=5)
    same = Cut(links=(BA,), close=True, of_1000=300, seed=5)
    turns = next(number for number in range(1000) if same.takes_next())
    bench.obey(bench.core.place(cut))
    for number in range(turns):
        # What is of the other link is no turn of the cut.
        assert all(bench.passes(direction, AB) for _ in range(5))
        assert bench.passes(direction, BA), number
    assert (0, False) == (cut.frames_lost, bench.connection.over)
    assert not bench.passes(direction, BA)
    assert ({BA: 1}, [bench.connection]) == (cut.lost, bench.reset)


def test_frame_of_no_link_is_of_the_node_that_dialled() -> None:
    bench = SharedBench()
    cut = Cut(links=(AB,), close=False)
    bench.obey(bench.core.place(cut))
    assert (False, False) == (bench.passes(REQUESTS, None), bench.passes(ANSWERS, None))
    assert (True, True) == (bench.passes(REQUESTS, BA), bench.passes(ANSWERS, BA))
    assert {AB: 2} == cut.lost


def test_connection_that_is_not_shared_has_the_one_link() -> None:
    bench = Bench()
    bench.connect(AB)
    assert (1, 0) == (len(bench.core.on(AB)), len(bench.core.on(BA)))
    bench.obey(bench.core.place(Cut(links=(BA,), close=True)))
    assert [] == bench.reset
