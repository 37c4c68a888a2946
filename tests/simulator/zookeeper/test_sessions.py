"""Sessions, watches and lost connections, between a node's client and the server."""

from __future__ import annotations

from typing import Any

import pytest

from harness.target.wire import Word
from targets.simulator.engine.clock import NS_PER_MS, Clock
from targets.simulator.engine.links import SimLinks
from targets.simulator.engine.network import Latency, Network, Recorder
from targets.simulator.engine.pipe import Frame, Pipe
from targets.simulator.zookeeper import ops
from targets.simulator.zookeeper.client import Announced, Answered, Fired, Heard, ZkClient
from targets.simulator.zookeeper.server import SESSION_FIRST, Ending, ZooKeeper

TIMEOUT_MS = 3_000


class NoWitness:
    """Records nothing."""

    def passed(self, record: Recorder, pipe: Pipe, direction: int, frame: Frame) -> None:
        pass


class Someone:
    """A client without a core, which keeps its events; while `stopped`, it does nothing, as a paused process."""

    def __init__(self, room: Room, name: str, *, is_random: bool = False) -> None:
        self.events: list[Heard] = []
        self.listening = False
        self.stopped = False
        self.client = ZkClient(
            name=name,
            life=1,
            clock=room.clock,
            network=room.network,
            timeout_ms=TIMEOUT_MS,
            is_random=is_random,
            post=self.events.append,
        )
        self._tags = 0
        room.network.ends[name] = self
        room.people[name] = self
        self.client.connect()

    def ask(self, *ops: Any) -> int:
        """Send the operations; return their tag."""
        self._tags += 1
        self.client.ask(self._tags, ops)
        return self._tags

    def on_frame(self, pipe: Pipe, _direction: int, frame: Frame) -> None:
        if not self.stopped:
            self.client.on_frame(pipe, frame)

    def on_end(self, pipe: Pipe) -> None:
        self.client.on_end(pipe)

    @property
    def session(self) -> int:
        return self.client.announced

    def results(self, tag: int) -> tuple[object, ...] | None:
        """Return the results of a request, None while it is unanswered."""
        found = [event.results for event in self.events if isinstance(event, Answered) and event.tag == tag]
        assert len(found) < 2, "answered twice"
        return found[0] if found else None

    @property
    def fired(self) -> list[str]:
        return [event.path for event in self.events if isinstance(event, Fired)]

    @property
    def sessions(self) -> list[int]:
        return [event.session for event in self.events if isinstance(event, Announced)]


class Room:
    """A server and its clients."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = Clock(seed)
        self.network = Network(self.clock, Latency(), NoWitness())
        self.links = SimLinks(self.network, (Word.METADATA_REQUEST,))
        self.server = ZooKeeper(self.clock, self.network, TIMEOUT_MS)
        self.network.ends["metadata"] = self.server
        self.people: dict[str, Someone] = {}

    def settle(self, ms: float = 10) -> None:
        """Handle every event that is due within the time, and advance the clock."""
        until = self.clock.now_ns + int(ms * NS_PER_MS)
        while (following := self.clock.next_ns) is not None and following <= until:
            what, *rest = self.clock.pop() or ()
            if what == "frame":
                self.network.on_due(*rest)
            elif what == "ended":
                self.network.on_ended(*rest)
            elif what == "session":
                self.server.on_session_due(*rest)
            elif not self.people[rest[0]].stopped:
                client = self.people[rest[0]].client
                if what == "heard":
                    client.on_late()
                else:
                    client.connect() if what == "redial" else client.on_ping_due(rest[2])
        self.clock.advance(until)


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def a(room: Room) -> Someone:
    someone = Someone(room, "A")
    room.settle()
    someone.ask(ops.Create(path="/n", data=b"0"))
    room.settle()
    return someone


def test_session_begins_and_asks_are_answered_in_order(room: Room, a: Someone) -> None:
    tags = [a.ask(ops.Get(path="/n"), ops.Create(path="/n")), a.ask(), a.ask(ops.Children(path="/"))]
    room.settle()
    assert [SESSION_FIRST] == a.sessions
    node = ops.Node(data=b"0", version=0, owner=0, czxid=1, mzxid=1)
    assert (node, ops.Error.NODE_EXISTS) == a.results(tags[0])
    assert () == a.results(tags[1])
    assert [1, *tags] == [event.tag for event in a.events if isinstance(event, Answered)]
    assert {SESSION_FIRST} == {event.session for event in a.events if isinstance(event, Answered)}


def test_what_is_asked_before_there_is_a_connection_waits_for_it(room: Room) -> None:
    someone = Someone(room, "A")
    tag = someone.ask(ops.Create(path="/n"))
    room.settle()
    assert (ops.Done(),) == someone.results(tag)


def test_watch_is_told_before_what_is_read_after_the_change(room: Room, a: Someone) -> None:
    other = Someone(room, "B")
    a.ask(ops.Exists(path="/n", watch=True))
    room.settle()
    other.ask(ops.Multi(parts=(ops.Set(path="/n", data=b"1", version=0),)))
    room.settle(ms=0.15)
    tag = a.ask(ops.Get(path="/n"))
    room.settle()
    found = a.results(tag)
    assert found is not None
    assert isinstance(found[0], ops.Node)
    assert b"1" == found[0].data
    order = [event for event in a.events if isinstance(event, Fired | Answered)]
    assert ["Fired", "Answered"] == [type(event).__name__ for event in order[-2:]]


def test_live_session_outlasts_its_timeout_and_a_silent_one_does_not(room: Room, a: Someone) -> None:
    a.ask(ops.Create(path="/mine", ephemeral=True))
    room.settle(ms=10 * TIMEOUT_MS)
    assert SESSION_FIRST == room.server.session_of("/mine")
    a.stopped = True
    room.settle(ms=TIMEOUT_MS + 10)
    assert (0, {}) == (room.server.session_of("/mine"), room.server.sessions)


def test_session_of_a_dead_client_stands_until_its_timeout(room: Room, a: Someone) -> None:
    a.ask(ops.Create(path="/mine", ephemeral=True))
    room.settle()
    a.stopped = True
    room.network.hang_up_all("A")
    room.settle(ms=TIMEOUT_MS - 100)
    assert SESSION_FIRST == room.server.session_of("/mine")
    room.settle(ms=200)
    assert 0 == room.server.session_of("/mine")


def test_client_comes_back_within_its_session_and_every_watch_fires(room: Room, a: Someone) -> None:
    a.ask(
        ops.Exists(path="/n", watch=True),
        ops.Children(path="/n", watch=True),
        ops.Children(path="/none", watch=True),
    )
    room.settle()
    room.links.close_links("A", "metadata")
    room.settle(ms=100)
    assert ([SESSION_FIRST], ["/n", "/n"]) == (a.sessions, a.fired)
    Someone(room, "B").ask(ops.Multi(parts=(ops.Set(path="/n", data=b"1", version=0),)))
    room.settle()
    assert ["/n", "/n"] == a.fired  # the watches are gone


def test_what_was_under_way_when_the_connection_went_is_lost_and_what_comes_after_waits(
    room: Room, a: Someone
) -> None:
    lost = a.ask(ops.Get(path="/n"))
    room.links.close_links("A", "metadata")
    room.settle(ms=1)
    later = a.ask(ops.Get(path="/n"))
    room.settle(ms=100)
    assert ((ops.Error.LOST,), True) == (a.results(lost), isinstance((a.results(later) or (0,))[0], ops.Node))


@pytest.mark.parametrize("done", [True, False])
def test_write_whose_connection_is_lost_may_have_happened_or_not(room: Room, a: Someone, done: bool) -> None:
    room.server.losing["A"] = done
    read = a.ask(ops.Get(path="/n"))
    room.settle()
    write = a.ask(ops.Multi(parts=(ops.Set(path="/n", data=b"1", version=0),)))
    room.settle(ms=100)
    assert isinstance((a.results(read) or (0,))[0], ops.Node)  # only the next write is lost
    assert (ops.Error.LOST,) == a.results(write)
    assert (b"1" if done else b"0", [SESSION_FIRST]) == (room.server.tree.nodes["/n"].data, a.sessions)


@pytest.mark.parametrize("direction", ["request", "answer"])
def test_write_is_indeterminate_when_a_held_connection_is_dropped(room: Room, a: Someone, direction: str) -> None:
    hold = room.links.hold("metadata-request", "A", "metadata", direction)
    write = a.ask(ops.Create(path="/m"))
    room.settle()
    room.links.drop(hold)
    room.settle(ms=100)
    assert ((ops.Error.LOST,), direction == "answer") == (a.results(write), "/m" in room.server.tree.nodes)


def test_expired_session_is_told_and_the_next_begins(room: Room, a: Someone) -> None:
    a.ask(ops.Create(path="/mine", ephemeral=True), ops.Exists(path="/n", watch=True))
    room.settle()
    room.server.expire(SESSION_FIRST)
    room.server.expire(SESSION_FIRST)
    lost = a.ask(ops.Get(path="/n"))
    assert 0 == room.server.session_of("/mine")
    room.settle(ms=100)
    assert ([SESSION_FIRST, 0, SESSION_FIRST + 1], (ops.Error.LOST,)) == (a.sessions, a.results(lost))
    # As with the real client: the connection is lost first, and only the next one reports the expired session.
    order = [event.path if isinstance(event, Fired) else type(event).__name__ for event in a.events]
    assert ["Answered", "/n", "Announced", "Announced"] == order[-4:]


def test_ask_that_waits_for_a_connection_is_lost_with_its_session(room: Room, a: Someone) -> None:
    room.server.expire(SESSION_FIRST)
    room.settle(ms=1)
    waits = a.ask(ops.Get(path="/n"))
    room.settle(ms=100)
    answers = [event for event in a.events if isinstance(event, Answered) and event.tag == waits]
    assert [((ops.Error.LOST,), 0)] == [(event.results, event.session) for event in answers]


def test_cut_client_gives_its_connection_up_and_its_session_expires(room: Room, a: Someone) -> None:
    a.ask(ops.Create(path="/mine", ephemeral=True))
    room.settle()
    cut = room.links.cut("A", "metadata")
    lost = a.ask(ops.Get(path="/n"))
    room.settle(ms=2 / 3 * TIMEOUT_MS + 10)
    assert ((ops.Error.LOST,), SESSION_FIRST) == (a.results(lost), room.server.session_of("/mine"))
    room.settle(ms=TIMEOUT_MS)
    assert ([SESSION_FIRST], 0) == (a.sessions, room.server.session_of("/mine"))  # it does not know yet
    room.links.heal(cut)
    room.settle(ms=2 * TIMEOUT_MS)
    assert [SESSION_FIRST, 0, SESSION_FIRST + 1] == a.sessions


def test_closed_session_is_gone_at_once(room: Room, a: Someone) -> None:
    a.ask(ops.Create(path="/mine", ephemeral=True))
    a.client.close()
    room.settle()
    assert (0, 1) == (room.server.session_of("/mine"), room.server.ended)


def test_late_connection_takes_over_from_the_one_before(room: Room, a: Someone) -> None:
    (old,) = list(room.network.pipes.values())
    room.links.hold("metadata-request", "A", "metadata", "answer")
    room.settle(ms=2 / 3 * TIMEOUT_MS + 100)  # A gives up; the server has not seen the old connection end
    room.links.release_all()
    room.settle(ms=100)
    assert ([SESSION_FIRST], True) == (a.sessions, old.over)
    tag = a.ask(ops.Children(path="/"))
    room.settle(ms=100)
    assert a.results(tag)


@pytest.mark.parametrize("is_random", [True, False])
def test_ask_is_split_in_a_random_world_so_that_a_write_may_come_in_between(is_random: bool) -> None:
    torn = 0
    for seed in range(60):
        room = Room(seed)
        a, b = Someone(room, "A", is_random=is_random), Someone(room, "B")
        a.ask(ops.Create(path="/n"))
        room.settle()
        tag = a.ask(*[ops.Children(path="/n")] * 4)
        b.ask(ops.Create(path="/n/x"))
        room.settle()
        results = a.results(tag)
        assert results is not None
        assert set(results) <= {ops.Names(names=()), ops.Names(names=("x",))}
        torn += len(set(results)) > 1
    assert is_random is (torn > 0)


def test_session_ends_after_so_many_asks_and_the_last_answer_is_still_sent(room: Room, a: Someone) -> None:
    room.server.ending["A"] = Ending(left=2)
    ended: list[tuple[str, int]] = []
    room.server.on_ending = lambda name, session: ended.append((name, session))
    first, second = a.ask(ops.Get(path="/n")), a.ask(ops.Create(path="/m", ephemeral=True))
    room.settle()
    assert [("A", SESSION_FIRST)] == ended
    assert a.results(first) is not None
    assert (ops.Done(),) == a.results(second)
    assert "/m" not in room.server.tree.nodes
    assert {} == room.server.ending


def test_session_ends_after_a_write_if_only_writes_count(room: Room, a: Someone) -> None:
    room.server.ending["A"] = Ending(left=1, writes=True)
    a.ask(ops.Get(path="/n"))
    room.settle()
    assert [SESSION_FIRST] == a.sessions
    a.ask(ops.Create(path="/m"))
    room.settle(TIMEOUT_MS)
    assert "/m" in room.server.tree.nodes
    assert SESSION_FIRST != a.sessions[-1] != 0


def test_process_that_has_fallen_behind_hears_it_all_in_the_next_session_in_order(room: Room, a: Someone) -> None:
    a.client.fall_behind()
    tags = [a.ask(ops.Get(path="/n")), a.ask(ops.Exists(path="/n", watch=True))]
    room.settle()
    assert all(a.results(tag) is None for tag in tags)
    room.server.expire(a.session)
    room.settle(TIMEOUT_MS)
    assert SESSION_FIRST != a.session != 0
    assert all(a.results(tag) is not None for tag in tags)
    late = [event for event in a.events if isinstance(event, Answered) and event.tag in tags]
    assert [(tag, SESSION_FIRST) for tag in tags] == [(event.tag, event.session) for event in late]
    assert a.events.index(Announced(session=a.session)) < a.events.index(late[0])


def test_connection_alone_ends_and_of_the_last_ask_the_rest_is_lost(room: Room, a: Someone) -> None:
    room.server.ending["A"] = Ending(left=2, session=False, part=0.5)
    session = a.session
    before, last, after = a.ask(ops.Get(path="/n")), a.ask(*(ops.Get(path="/x") for _ in range(4))), a.ask()
    room.settle(TIMEOUT_MS / 2)
    assert [session] == a.sessions
    gone, lost = ops.Error.NO_NODE, ops.Error.LOST
    assert (gone, gone, lost, lost) == a.results(last)
    assert lost not in (a.results(before) or (lost,))
    assert () == a.results(after)
    assert 1 == room.server.dropped


def test_last_ask_before_its_connection_ends_is_done_and_not_answered_if_the_end_is_silent(
    room: Room, a: Someone
) -> None:
    room.server.ending["A"] = Ending(left=1, writes=True, session=False, silent=True)
    session, made = a.session, a.ask(ops.Create(path="/mine", data=b"", ephemeral=True))
    room.settle(TIMEOUT_MS / 2)
    assert [session] == a.sessions
    assert (ops.Error.LOST,) == a.results(made)
    assert session == room.server.session_of("/mine")


def test_held_node_waits_while_others_are_served_and_its_session_lives(room: Room, a: Someone) -> None:
    """A server whose disk is slow has heard of the session before the request waits."""
    b = Someone(room, "B")
    room.settle()
    room.server.hold("A")
    late = a.ask(ops.Multi(parts=(ops.Set(path="/n", data=b"late", version=1),)))
    room.settle(ms=TIMEOUT_MS / 2)
    b.ask(ops.Multi(parts=(ops.Set(path="/n", data=b"1", version=0),)))
    room.settle(ms=10)
    room.server.halt()
    room.server.go_on()
    assert (None, 0) == (a.results(late), room.server.ended)
    room.server.release("A")
    room.settle(ms=10)
    assert ((ops.Done(),), b"late") == (a.results(late), room.server.tree.nodes["/n"].data)


def test_what_a_held_node_asked_is_done_though_it_has_given_its_connection_up(room: Room, a: Someone) -> None:
    room.server.hold("A")
    lost = a.ask(ops.Multi(parts=(ops.Set(path="/n", data=b"1", version=0),)))
    room.settle(ms=2 / 3 * TIMEOUT_MS + 100)
    found = a.ask(ops.Get(path="/n"))
    assert ((ops.Error.LOST,), b"0") == (a.results(lost), room.server.tree.nodes["/n"].data)
    room.server.release("A")
    room.settle(ms=TIMEOUT_MS)
    ((node,),) = [a.results(found) or ()]
    assert isinstance(node, ops.Node)
    assert (b"1", [SESSION_FIRST]) == (node.data, a.sessions)
