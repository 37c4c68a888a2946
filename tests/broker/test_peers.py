"""
Connections to other brokers: each request is answered exactly once, even when the connection fails.

Length:  all that may befall one connection, with the same loop and the same peer.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from targets.broker import peers
from targets.broker.core.events import Answered, Event
from targets.broker.core.messages import EpochAnswer, ErrorCode, FetchRequest, OffsetForLeaderEpochResponse
from targets.broker.core.rounds import FETCHES, QUESTIONS
from targets.broker.peers import Outbound, Peers
from targets.broker.wire import encode_request
from targets.broker.wire.versions import FETCH, OFFSET_FOR_LEADER_EPOCH, ROWS
from tests.broker.wires import TP, Wire, api_versions, asked, question, receive, replied, reply, versions_told

# A peer of the first release that answers epoch requests.
OLD = versions_told((OFFSET_FOR_LEADER_EPOCH, 0, 0))


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose connections stay pending until the test makes or refuses them."""

    def __init__(self) -> None:
        super().__init__()
        self.connecting: list[tuple[Callable[[], Any], tuple[str, int], asyncio.Future[Wire]]] = []
        self.protocols: list[Outbound] = []

    async def create_connection(self, factory: Any, *address: Any, **_: Any) -> Any:  # type: ignore[override]
        made: asyncio.Future[Wire] = self.create_future()
        self.connecting.append((factory, address, made))  # type: ignore[arg-type]
        wire = await made
        protocol = factory()
        protocol.connection_made(wire)
        self.protocols.append(protocol)
        return wire, protocol


async def turns() -> None:
    """Run all callbacks that are ready."""
    for _ in range(10):
        await asyncio.sleep(0)


def play(story: Callable[[Loop], Awaitable[None]]) -> None:
    """Run a test body on a new loop."""

    async def told() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        await story(loop)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(told())


class Asker:
    """One connection to another broker."""

    def __init__(self, told: bytes = OLD) -> None:
        self.events: list[Event] = []
        self.gone = 0
        self.wire = Wire()
        self.outbound = Outbound("x", ROWS, self.events.append, self._gone)
        self.outbound.connection_made(self.wire)
        assert [api_versions(0)] == self.wire.written
        self.wire.written.clear()
        if told:
            receive(self.outbound, told)

    def _gone(self) -> None:
        self.gone += 1

    def asks(self, *tags: int) -> None:
        for tag in tags:
            self.outbound.ask(tag, question(tag))


def test_answers_find_their_questions_by_correlation_id_in_whatever_order() -> None:
    async def story(_: Loop) -> None:
        asker = Asker()
        asker.asks(1, 2)
        receive(asker.outbound, replied(2, 22) + replied(1, 11)[:7])
        receive(asker.outbound, replied(1, 11)[7:])
        assert [asked(1), asked(2)] == asker.wire.written
        assert [Answered(tag=2, response=reply(22)), Answered(tag=1, response=reply(11))] == asker.events

    play(story)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(replied(9, 1), id="answer that nobody asked for"),
        pytest.param(b"\xff\xff\xff\xff", id="no frame"),
        pytest.param(struct.pack(">ii", 4, 2), id="answer that cannot be read"),
        pytest.param(struct.pack(">i", len(replied(2, 1)) - 3) + replied(2, 1)[4:] + b"x", id="answer too long"),
    ],
)
def test_answer_that_is_none_closes_the_connection_and_every_question_is_answered_once(frame: bytes) -> None:
    async def story(_: Loop) -> None:
        asker = Asker()
        asker.asks(1, 2, 3)
        receive(asker.outbound, replied(1, 5))
        receive(asker.outbound, frame)
        assert asker.wire.aborted
        asker.outbound.connection_lost(None)
        lost = [Answered(tag=tag, response=None) for tag in (2, 3)]
        assert [Answered(tag=1, response=reply(5)), *lost] == asker.events
        assert 1 == asker.gone

    play(story)


def test_lost_connection_answers_none_to_all_that_was_asked_and_to_all_that_comes_after() -> None:
    async def story(_: Loop) -> None:
        asker = Asker()
        asker.asks(1, 2)
        asker.outbound.connection_lost(ConnectionResetError())
        asker.asks(3)
        assert [Answered(tag=tag, response=None) for tag in (1, 2, 3)] == asker.events

    play(story)


def test_question_that_is_not_answered_in_time_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(_: Loop) -> None:
        asker = Asker()
        asker.asks(1)
        await turns()
        assert asker.wire.aborted

    monkeypatch.setattr(peers, "ANSWER_S_MAX", 0.0)
    play(story)


def test_answered_question_has_no_deadline_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(_: Loop) -> None:
        asker = Asker()
        asker.asks(1)
        receive(asker.outbound, replied(1, 5))
        await turns()
        assert not asker.wire.aborted

    monkeypatch.setattr(peers, "ANSWER_S_MAX", 0.0)
    play(story)


# --- one connection for each broker and channel --------------------------------------------------------------
ADDRESSES = {2: ("b", 1), 3: ("c", 2)}


class Cluster:
    """The peers of broker 1, and the events that they posted."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.events: list[Event] = []
        self.resolved: list[int] = []
        self.greetings: list[bytes] = []
        self.peers = Peers(1, ROWS, self.events.append, self._resolve)

    def _resolve(self, broker: int, found: Callable[[tuple[str, int] | None], None]) -> None:
        self.resolved.append(broker)
        found(ADDRESSES.get(broker))

    async def asks(self, to: int, channel: str, *tags: int) -> None:
        for tag in tags:
            self.peers.ask(to, channel, tag, question(tag))
        await turns()

    async def connects(self, number: int) -> Wire:
        """Complete one of the pending connections and send the peer's versions."""
        wire = Wire()
        self.loop.connecting[number][2].set_result(wire)
        await turns()
        self.greetings.append(wire.written.pop())
        receive(self.loop.protocols[-1], OLD)
        await turns()
        return wire

    async def refuses(self, number: int, why: Exception | None = None) -> None:
        self.loop.connecting[number][2].set_exception(why or ConnectionRefusedError())
        await turns()


def framed(tag: int, client_id: str, version: int = 0) -> bytes:
    """Return the request's frame as a broker sends it."""
    return encode_request(question(tag), version=version, correlation_id=tag, client_id=client_id)


def test_questions_asked_while_connecting_are_sent_in_order_before_those_that_come_after() -> None:
    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(2, "fetcher", 1, 2, 3)
        wire = await cluster.connects(0)
        await cluster.asks(2, "fetcher", 4)
        assert [framed(tag, "broker-1-fetcher-to-2") for tag in (1, 2, 3, 4)] == wire.written
        assert ([2], [("b", 1)]) == (cluster.resolved, [address for _, address, _ in loop.connecting])
        cluster.peers.close()

    play(story)


def test_two_channels_and_two_brokers_are_connections_of_their_own() -> None:
    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(2, "fetcher", 1)
        await cluster.asks(2, "controller", 2)
        await cluster.asks(3, "fetcher", 3)
        wires = [await cluster.connects(number) for number in range(3)]
        names = ("broker-1-fetcher-to-2", "broker-1-controller-to-2", "broker-1-fetcher-to-3")
        assert [[framed(tag, name)] for tag, name in zip((1, 2, 3), names, strict=True)] == [
            wire.written for wire in wires
        ]
        assert [api_versions(0, name) for name in names] == cluster.greetings
        cluster.peers.close()
        assert [True, True, True] == [wire.aborted for wire in wires]

    play(story)


@pytest.mark.parametrize(
    "why", [ConnectionRefusedError(), UnicodeError("label too long")], ids=["nobody listens", "no name of a host"]
)
def test_refused_connection_answers_none_and_is_tried_anew_by_the_next_question(why: Exception) -> None:
    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(2, "fetcher", 1, 2)
        await cluster.refuses(0, why)
        assert [Answered(tag=tag, response=None) for tag in (1, 2)] == cluster.events
        await cluster.asks(2, "fetcher", 3)
        wire = await cluster.connects(1)
        assert ([framed(3, "broker-1-fetcher-to-2")], [2, 2]) == (wire.written, cluster.resolved)
        cluster.peers.close()

    play(story)


def test_broker_that_is_not_registered_is_answered_with_none_and_looked_up_anew() -> None:
    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(9, "fetcher", 1)
        await cluster.asks(9, "fetcher", 2)
        assert [Answered(tag=tag, response=None) for tag in (1, 2)] == cluster.events
        assert ([9, 9], []) == (cluster.resolved, loop.connecting)

    play(story)


def test_connection_that_does_not_come_about_in_time_is_answered_with_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(2, "fetcher", 1)
        assert [Answered(tag=1, response=None)] == cluster.events

    monkeypatch.setattr(peers, "CONNECT_S_MAX", 0.0)
    play(story)


def test_lost_connection_is_made_anew_by_the_next_question() -> None:
    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(2, "fetcher", 1)
        await cluster.connects(0)
        _protocol(cluster, 2, "fetcher").connection_lost(None)
        assert [Answered(tag=1, response=None)] == cluster.events
        await cluster.asks(2, "fetcher", 2)
        wire = await cluster.connects(1)
        assert [framed(2, "broker-1-fetcher-to-2")] == wire.written
        cluster.peers.close()

    play(story)


def test_connection_given_up_that_ends_late_takes_no_question_of_its_successor() -> None:
    """Its transport already existed when the connect timed out; connection_lost is called afterwards."""

    async def story(loop: Loop) -> None:
        cluster = Cluster(loop)
        await cluster.asks(2, "fetcher", 1)
        given_up = loop.connecting[0][0]()
        given_up.connection_made(Wire())
        loop.connecting[0][2].set_exception(TimeoutError())
        await turns()
        await cluster.asks(2, "fetcher", 2)
        given_up.connection_lost(None)
        await cluster.asks(2, "fetcher", 3)
        wire = await cluster.connects(1)
        assert [framed(tag, "broker-1-fetcher-to-2") for tag in (2, 3)] == wire.written
        assert [Answered(tag=1, response=None)] == cluster.events
        cluster.peers.close()

    play(story)


def _protocol(cluster: Cluster, to: int, channel: str) -> Outbound:
    protocol = cluster.peers._lanes[to, channel].protocol
    assert protocol is not None
    return protocol


# --- versions --------------------------------------------------------------------------------------------------
def test_questions_wait_for_what_the_peer_knows_and_go_in_the_newest_version_that_both_do() -> None:
    async def story(_: Loop) -> None:
        for newest, spoken in ((0, 0), (1, 1), (3, 3), (4, 4), (9, 4)):
            asker = Asker(told=b"")
            asker.asks(1, 2)
            assert [] == asker.wire.written
            receive(asker.outbound, versions_told((OFFSET_FOR_LEADER_EPOCH, 0, newest)))
            assert [framed(tag, "x", version=spoken) for tag in (1, 2)] == asker.wire.written
            asker.asks(3)
            assert framed(3, "x", version=spoken) == asker.wire.written[-1]

    play(story)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(versions_told(), id="peer that knows nothing"),
        pytest.param(versions_told((OFFSET_FOR_LEADER_EPOCH, 5, 5)), id="peer that is too new"),
    ],
)
def test_peer_that_cannot_be_asked_for_epochs_is_not_asked_and_the_core_is_told_why(told: bytes) -> None:
    """Source: KIP-101, compatibility: the follower truncates to its high watermark."""

    async def story(_: Loop) -> None:
        asker = Asker(told=b"")
        asker.asks(1)
        receive(asker.outbound, told)
        asker.asks(2)
        answer = EpochAnswer(tp=TP, error=ErrorCode.UNSUPPORTED_VERSION)
        response = OffsetForLeaderEpochResponse(answers=(answer,))
        assert [Answered(tag=tag, response=response) for tag in (1, 2)] == asker.events
        assert ([], False) == (asker.wire.written, asker.wire.aborted)

    play(story)


@pytest.mark.parametrize(
    ("told", "place"), [(OLD, {}), (versions_told((FETCH, 0, 6)), {"session_id": 5, "session_epoch": 1})]
)
def test_fetch_that_a_peer_does_not_know_has_no_answer(told: bytes, place: dict[str, int]) -> None:
    """Source: KIP-227, in Fetch v7: an older leader would take what has changed for all that is asked."""

    async def story(_: Loop) -> None:
        asker = Asker(told=told)
        request = FetchRequest(replica_id=1, max_wait_ms=0, min_bytes=0, max_bytes=0, partitions=(), **place)
        asker.outbound.ask(1, request)
        assert ([Answered(tag=1, response=None)], []) == (asker.events, asker.wire.written)

    play(story)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(versions_told((23, 0, 0), error=35), id="peer that refuses"),
        pytest.param(versions_told((23, 0, 0))[:-1], id="answer cut short"),
        pytest.param(replied(7, 1), id="answer to another question"),
    ],
)
def test_peer_that_does_not_tell_its_versions_is_left_and_every_question_is_answered_once(told: bytes) -> None:
    async def story(_: Loop) -> None:
        asker = Asker(told=b"")
        asker.asks(1, 2)
        length = len(told) - 4
        receive(asker.outbound, struct.pack(">i", length) + told[4:])
        assert asker.wire.aborted
        asker.outbound.connection_lost(None)
        assert [Answered(tag=tag, response=None) for tag in (1, 2)] == asker.events
        assert [] == asker.wire.written

    play(story)


def test_peer_that_never_tells_its_versions_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(_: Loop) -> None:
        asker = Asker(told=b"")
        asker.asks(1)
        await turns()
        assert asker.wire.aborted

    monkeypatch.setattr(peers, "ANSWER_S_MAX", 0.0)
    play(story)


def test_second_connection_of_a_fetcher_goes_where_the_first_one_does_and_no_other() -> None:
    """A follower that is cut off from ZooKeeper could not ask it where its leader is, and must fetch on."""

    async def story(loop: Loop) -> None:
        peers_of_1 = Cluster(loop)
        await peers_of_1.asks(2, QUESTIONS, 1)
        await peers_of_1.connects(0)
        await peers_of_1.asks(2, FETCHES, 2)
        assert [2] == peers_of_1.resolved
        assert [ADDRESSES[2], ADDRESSES[2]] == [address for _, address, _ in loop.connecting]
        await peers_of_1.asks(2, "controller", 3)
        assert [2, 2] == peers_of_1.resolved

    play(story)
