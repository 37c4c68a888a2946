"""The simulated links implement the operations of the fabric's links."""

from __future__ import annotations

import pytest

from harness.cluster.interfaces import Links
from harness.model import UsageError
from targets.simulator.broker.wire import WirePipe
from targets.simulator.engine.pipe import REQUESTS
from targets.simulator.zookeeper.pipe import ZkPipe
from tests.simulator.ends import Room, fetch, question


@pytest.fixture
def room() -> Room:
    return Room()


def test_links_are_what_every_ground_has(room: Room) -> None:
    links: Links = room.links
    links.close()


# --- hold ---------------------------------------------------------------------------------------------------
def test_held_frame_and_all_behind_it_wait_and_go_on_in_order(room: Room) -> None:
    pipe = room.dial()
    hold = room.links.hold("fetch", "A", "B", "request")
    room.ask(pipe, "question", question(1))
    room.ask(pipe, "fetch")
    room.ask(pipe, "behind", question(1))
    room.settle()
    assert (["question"], 1) == (room.b.got, len(hold.held))
    room.links.release(hold)
    room.settle()
    assert ["question", "fetch", "behind"] == room.b.got
    assert ["hold", "held", "release"] == [f for f, _ in room.told if f not in ("fetch", "epoch-question")]


def test_frame_that_was_on_its_way_when_the_hold_was_placed_is_held(room: Room) -> None:
    pipe = room.dial()
    room.ask(pipe, "fetch")
    hold = room.links.hold("fetch", "A", "B", "request")
    room.settle()
    assert ([], 1) == (room.b.got, len(hold.held))


def test_hold_of_answers_is_about_answers_alone_and_knows_them_by_their_request(room: Room) -> None:
    pipe = room.dial()
    hold = room.links.hold("fetch", "A", "B", "answer")
    room.ask(pipe, "q")
    room.answer(pipe, "an epoch's end", question(1))
    room.answer(pipe, "records", fetch(3))
    room.settle()
    assert (["q"], ["an epoch's end"], [3]) == (room.b.got, room.a.got, [frame.offset for frame in hold.held])


def test_hold_from_an_offset_lets_earlier_fetches_pass(room: Room) -> None:
    pipe = room.dial()
    hold = room.links.hold("fetch", "A", "B", "request", from_offset=4)
    for offset in (3, 4, 5):
        room.ask(pipe, offset, fetch(offset))
    room.settle()
    assert ([3], [4]) == (room.b.got, [frame.offset for frame in hold.held])
    about = {"link": ["A", "B"], "api": "fetch", "direction": "request"}
    assert [{**about, "from_offset": 4}] == room.of("hold")
    assert [{**about, "offset": 4}] == room.of("held")


def test_hold_of_a_topic_is_about_no_other(room: Room) -> None:
    pipe = room.dial()
    room.links.hold("fetch", "A", "B", "request", topic="other")
    room.ask(pipe, "log", fetch(0, "log"))
    room.ask(pipe, "other", fetch(0, "other"))
    room.settle()
    assert ["log"] == room.b.got


def test_frame_that_two_holds_are_about_is_let_go_by_both(room: Room) -> None:
    pipe = room.dial()
    first, second = (room.links.hold("*", "*", "*", "request") for _ in range(2))
    room.ask(pipe, "q")
    room.settle()
    room.links.release(first)
    room.settle()
    assert ([], 1, 1) == (room.b.got, len(first.held), len(second.held))
    room.links.release_all()
    room.links.release(first)
    room.settle()
    assert (["q"], 2) == (room.b.got, len(room.of("release")))


def test_dropped_hold_throws_its_frames_away_and_resets_their_connection_only(room: Room) -> None:
    pipe, other = room.dial(), room.dial()
    hold = room.links.hold("fetch", "A", "B", "request")
    room.ask(pipe, "held")
    room.ask(other, "passes", question(1))
    room.settle()
    room.links.drop(hold)
    room.links.drop(hold)
    room.settle()
    assert (["passes"], [pipe.number], [pipe.number]) == (room.b.got, room.a.ended, room.b.ended)
    assert ["its hold was dropped"] == [value["reason"] for value in room.of("dropped")]


def test_held_frame_is_dropped_when_nobody_can_receive_it_any_more(room: Room) -> None:
    pipe = room.dial()
    room.links.hold("fetch", "A", "B", "answer")
    room.answer(pipe, "records")
    room.settle()
    room.network.hang_up_all("A")
    assert ["its destination's connection is closed"] == [value["reason"] for value in room.of("dropped")]


def test_end_of_a_dead_node_waits_behind_what_is_held(room: Room) -> None:
    pipe = room.dial()
    hold = room.links.hold("fetch", "A", "B", "request")
    room.ask(pipe, "q")
    room.network.hang_up_all("A")
    room.settle()
    assert [] == room.b.ended
    room.links.release(hold)
    room.settle()
    assert (["q"], [pipe.number]) == (room.b.got, room.b.ended)


# --- cut ----------------------------------------------------------------------------------------------------
def test_cut_link_loses_requests_and_answers_and_tells_nobody_until_it_heals(room: Room) -> None:
    pipe, idle = room.dial(), room.dial()
    cut = room.links.cut("A", "B")
    room.ask(pipe, "q")
    room.answer(pipe, "a")
    room.settle()
    assert ([], [], [], 2) == (room.a.got, room.b.got, room.a.ended, cut.frames_lost)
    room.links.heal(cut)
    room.links.heal(cut)
    room.ask(idle, "after")
    room.settle()
    # The connection that lost frames has gaps: it is reset. The idle one lost none and stays open.
    assert (["after"], [pipe.number], [pipe.number]) == (room.b.got, room.a.ended, room.b.ended)
    assert [{"link": ["A", "B"], "close": False}, {"link": ["A", "B"]}] == room.of("cut") + room.of("heal")
    assert [{"link": ["A", "B"]}] == room.of("lost")


def test_cut_is_of_one_direction_of_links_unless_it_is_both_ways(room: Room) -> None:
    back = room.network.dial("B", "A", "fetcher", WirePipe)
    cut = room.links.cut("A", "B")
    room.ask(back, "passes")
    room.settle()
    room.links.heal(cut)
    room.links.cut("A", "B", both_ways=True)
    room.ask(back, "is lost")
    room.settle()
    assert ["passes"] == room.a.got


def test_cut_with_close_resets_what_there_is_and_whatever_comes(room: Room) -> None:
    pipe = room.dial()
    room.links.cut("A", "*", close=True)
    assert [{"link": ["A", "B"]}] == room.of("lost")
    later = room.dial()
    room.settle()
    assert [pipe.number] == room.a.ended
    room.ask(later, "q")
    room.settle()
    assert ([], [pipe.number, later.number]) == (room.b.got, room.a.ended)


def test_dead_end_of_a_cut_link_is_told_when_it_heals(room: Room) -> None:
    pipe = room.dial()
    cut = room.links.cut("A", "B")
    room.network.hang_up(pipe, REQUESTS)
    room.settle()
    assert [] == room.b.ended
    room.links.heal(cut)
    room.settle()
    assert [pipe.number] == room.b.ended


def test_held_frame_that_a_cut_takes_is_told_of(room: Room) -> None:
    pipe = room.dial()
    hold = room.links.hold("fetch", "A", "B", "request")
    room.ask(pipe, "q")
    room.settle()
    room.links.cut("A", "B")
    room.links.release(hold)
    room.settle()
    assert ["its link is cut"] == [value["reason"] for value in room.of("dropped")]


# --- delay, double, close -----------------------------------------------------------------------------------
def test_delayed_frame_is_late_by_that_and_holds_up_what_is_behind_it(room: Room) -> None:
    pipe = room.dial()
    delay = room.links.delay("fetch", "A", "B", "request", 0.5)
    room.ask(pipe, "late")
    room.ask(pipe, "behind", question(1))
    room.settle(ms=500)
    assert [] == room.b.got
    room.settle(ms=1)
    assert ["late", "behind"] == room.b.got
    room.ask(pipe, "healed")
    room.settle(ms=1)
    room.links.heal(delay)
    room.settle(ms=1)
    assert (["late", "behind", "healed"], 0.5) == (room.b.got, room.of("delay")[0]["seconds"])


def test_doubled_request_comes_twice_the_second_marked_and_in_its_place(room: Room) -> None:
    pipe = room.dial()
    double = room.links.double("fetch", "A", "B")
    room.ask(pipe, "q")
    room.ask(pipe, "other", question(1))
    room.settle()
    room.answer(pipe, "a")
    room.answer(pipe, "the second")
    room.settle()
    assert (["q", ("copy of ", "q"), "other"], ["a"], 1) == (room.b.got, room.a.got, len(room.of("doubled")))
    room.links.heal(double)
    room.ask(pipe, "once")
    room.settle()
    assert ("once", 1) == (room.b.got[-1], room.b.got.count("once"))


def test_zookeepers_requests_are_never_doubled(room: Room) -> None:
    pipe = room.network.dial("A", "B", "metadata", ZkPipe)
    room.links.double("*", "A", "B")
    room.network.send(pipe, REQUESTS, "to zookeeper", None)
    room.settle()
    assert ["to zookeeper"] == room.b.got


def test_closed_links_are_reset_once_and_counted(room: Room) -> None:
    pipe = room.dial()
    room.dial(outside=True)
    assert (1, 0) == (room.links.connections("A", "*"), room.links.connections("B", "*"))
    assert 1 == room.links.close_links("A", "B")
    room.settle()
    assert ([pipe.number], 0) == (room.a.ended, room.links.connections("A", "B"))
    room.ask(room.dial(), "again")
    room.settle()
    assert ["again"] == room.b.got


def test_all_is_healed_at_once(room: Room) -> None:
    pipe = room.dial()
    room.links.hold("*", "*", "*", "request")
    room.links.delay("*", "*", "*", "request", 5)
    room.links.cut("B", "A")
    room.links.double("*", "*", "*")
    room.ask(pipe, "q")
    room.settle()
    room.links.heal_all()
    room.settle(ms=1)
    assert (["q"], True) == (room.b.got, room.links.core.rules.idle)


def test_no_rule_is_about_a_clients_own_connection(room: Room) -> None:
    pipe = room.dial(outside=True)
    room.links.hold("*", "*", "*", "request")
    room.links.cut("*", "*", close=True)
    room.ask(pipe, "q")
    room.settle()
    assert ["q"] == room.b.got


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("hold", "fetsch", "A", "B", "request"), "unknown word 'fetsch'.*Did you mean 'fetch'"),
        (("hold", "fetch", "A", "B", "sideways"), "unknown direction 'sideways': expected one of answer, request"),
        (("hold", "fetch", "A", "D", "request"), r"unknown node 'D': expected one of \*, A, B"),
        (("hold", "Produce", "A", "B", "request", 4), "Produce with from_offset=4"),
        (("cut", "D", "A"), "node 'D'"),
        (("delay", "fetch", "D", "A", "request", 1), "node 'D'"),
        (("double", "fetch", "D", "A"), "node 'D'"),
        (("close_links", "A", "D"), "node 'D'"),
        (("connections", "A", "D"), "node 'D'"),
    ],
)
def test_name_of_nothing_is_refused(room: Room, call: tuple[str, ...], text: str) -> None:
    verb, *arguments = call
    with pytest.raises(UsageError, match=text):
        getattr(room.links, verb)(*arguments)
