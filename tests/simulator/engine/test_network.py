"""Frames of a connection arrive in order, its close arrives after them, and dead endpoints refuse connections."""

from __future__ import annotations

import pytest

from targets.simulator.broker.wire import WirePipe
from targets.simulator.engine.network import Latency
from targets.simulator.engine.pipe import ANSWERS, REQUESTS
from tests.simulator.ends import HOP_NS, Room


@pytest.fixture
def room() -> Room:
    return Room()


def test_frame_arrives_after_its_latency_and_the_answer_comes_back(room: Room) -> None:
    pipe = room.dial()
    room.ask(pipe, "q")
    room.settle(ms=0.05)
    assert [] == room.b.got
    room.settle(ms=0.05)
    assert (["q"], HOP_NS) == (room.b.got, room.clock.now_ns)
    room.answer(pipe, "a")
    room.settle()
    assert ["a"] == room.a.got


def test_frames_of_one_connection_keep_their_order_whatever_chance_draws() -> None:
    room = Room(latency=Latency(low_ns=1, high_ns=1_000_000))
    pipe = room.dial()
    for number in range(50):
        room.ask(pipe, number)
    room.settle()
    assert list(range(50)) == room.b.got


def test_connections_overtake_each_other_where_chance_decides() -> None:
    room = Room(latency=Latency(low_ns=1, high_ns=1_000_000))
    for number in range(50):
        room.ask(room.dial(), number)
    room.settle()
    assert sorted(room.b.got) == list(range(50)) != room.b.got


def test_connection_to_nobody_is_refused_after_a_while(room: Room) -> None:
    room.b.listening = False
    pipe = room.dial()
    room.ask(pipe, "q")
    assert [] == room.a.ended
    room.settle()
    assert ([pipe.number], [], [], 1) == (room.a.ended, room.b.ended, room.b.got, room.network.refused)
    other = room.network.dial("A", "nobody", "fetcher", WirePipe)
    room.settle()
    assert [pipe.number, other.number] == room.a.ended


def test_what_a_dead_node_had_sent_still_arrives_and_then_its_end(room: Room) -> None:
    pipe = room.dial()
    room.ask(pipe, "q")
    room.answer(pipe, "a")
    room.network.hang_up_all("A")
    room.settle()
    assert (["q"], [pipe.number], [], []) == (room.b.got, room.b.ended, room.a.got, room.a.ended)
    assert {} == room.network.pipes


def test_what_a_dead_node_had_sent_itself_arrives_nowhere(room: Room) -> None:
    """The node's next process does not know the connection."""
    pipe = room.network.dial("B", "B", "controller", WirePipe)
    room.ask(pipe, "q")
    room.network.hang_up_all("B")
    assert pipe.number not in room.network.pipes
    room.settle()
    assert ([], []) == (room.b.got, room.b.ended)


def test_end_of_who_answers_is_told_to_who_asked(room: Room) -> None:
    pipe = room.dial()
    room.ask(pipe, "q")
    room.answer(pipe, "a")
    room.network.hang_up(pipe, ANSWERS)
    room.settle()
    assert (["a"], [pipe.number], []) == (room.a.got, room.a.ended, room.b.ended)


def test_both_ends_may_go_at_once(room: Room) -> None:
    pipe = room.dial()
    room.network.hang_up(pipe, REQUESTS)
    room.network.hang_up(pipe, ANSWERS)
    room.network.hang_up(pipe, ANSWERS)
    room.settle()
    assert ([], [], {}) == (room.a.ended, room.b.ended, room.network.pipes)


def test_reset_ends_both_sides_and_loses_what_is_under_way(room: Room) -> None:
    pipe = room.dial()
    room.ask(pipe, "q")
    room.network.reset(pipe, "for a test")
    room.ask(pipe, "later")
    room.settle()
    assert ([], [pipe.number], [pipe.number]) == (room.b.got, room.a.ended, room.b.ended)


def test_nothing_is_sent_to_an_end_that_is_gone(room: Room) -> None:
    pipe = room.dial()
    room.network.hang_up(pipe, REQUESTS)
    room.answer(pipe, "a")
    room.settle()
    assert [] == room.a.got


def test_end_that_left_the_network_is_not_told(room: Room) -> None:
    pipe = room.dial()
    room.network.reset(pipe, "for a test")
    del room.network.ends["A"]
    room.settle()
    assert [pipe.number] == room.b.ended


def test_nothing_is_told_when_nobody_listens(room: Room) -> None:
    room.network.record = None
    room.ask(room.dial(), "q")
    room.links.hold("*", "A", "B", "request")
    room.settle()
    assert [] == room.told
