"""Two releases in one cluster, as in a rolling upgrade: the requests and answers between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from targets.broker.core.events import Answered, Event, Received
from targets.broker.core.messages import (
    EpochAnswer,
    EpochQuestion,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    LeaderAndIsrRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Request,
    Response,
    StopReplica,
    StopReplicaRequest,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.peers import Outbound
from targets.broker.wire import peer_rows
from tests.broker.wires import TP, Client, Wire, asked, receive


def play(story: Callable[[], None]) -> None:
    """Run a test body inside an event loop, which deadlines need."""

    async def told() -> None:
        story()

    asyncio.run(told())


class Pair:
    """A follower's connection to a leader of another protocol; the test carries the bytes."""

    def __init__(self, follower: str, leader: str) -> None:
        self.leader = Client(rows=peer_rows(leader, PROTOCOLS[leader]))
        self.events: list[Event] = []
        self.wire = Wire()
        rows = peer_rows(follower, PROTOCOLS[follower])
        self.outbound = Outbound("broker-2-fetcher", rows, self.events.append, lambda: None)
        self.outbound.connection_made(self.wire)
        self.hand_over()

    def hand_over(self) -> list[Request]:
        """Carry requests to the leader and answers back; return the requests that reached the leader's core."""
        before = len(self.leader.events)
        self.leader.sends(*self.wire.written)
        self.wire.written.clear()
        for frame in self.leader.wire.written:
            receive(self.outbound, frame)
        self.leader.wire.written.clear()
        return [event.request for event in self.leader.events[before:] if isinstance(event, Received)]

    def asks(self, request: Request, response: Response | None = None) -> list[Request]:
        """Send a request, have the leader's core answer, and return the requests that reached it."""
        self.outbound.ask(1, request)
        came = self.hand_over()
        if response is not None:
            self.leader.inbound.answer(response)
            self.hand_over()
        return came


FENCED = OffsetForLeaderEpochRequest(
    questions=(EpochQuestion(tp=TP, leader_epoch=4, current_leader_epoch=6),), replica_id=2
)
TOLD = OffsetForLeaderEpochResponse(
    answers=(EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=3, end_offset=21),)
)


@pytest.mark.parametrize(
    ("follower", "leader", "current", "epoch"),
    [
        ("kip320", "kip101", -1, -1),
        ("kip101", "kip320", -1, -1),
        ("kip320", "kip279", -1, 3),
        ("kip279", "kip320", -1, 3),
        ("kip320", "kip380", 6, 3),
        ("kip380", "kip320", 6, 3),
    ],
)
def test_epoch_question_between_two_releases_carries_what_both_know(
    follower: str, leader: str, current: int, epoch: int
) -> None:
    """Source: KIP-101 (v0 answers no epoch), KIP-279 (v1 does), KIP-320 (v2 carries a current leader epoch)."""

    def story() -> None:
        pair = Pair(follower, leader)
        (came,) = pair.asks(FENCED, TOLD)
        assert isinstance(came, OffsetForLeaderEpochRequest)
        assert [(4, current)] == [(asked.leader_epoch, asked.current_leader_epoch) for asked in came.questions]
        answer = EpochAnswer(tp=TP, error=ErrorCode.NONE, leader_epoch=epoch, end_offset=21)
        response = OffsetForLeaderEpochResponse(answers=(answer,))
        assert [Answered(tag=1, response=response)] == pair.events

    play(story)


@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol != "hw"])
def test_follower_of_a_leader_without_epochs_falls_back_whatever_its_own_release(protocol: str) -> None:
    def story() -> None:
        pair = Pair(protocol, "hw")
        assert [] == pair.asks(FENCED)
        (event,) = pair.events
        assert isinstance(event, Answered) and isinstance(event.response, OffsetForLeaderEpochResponse)
        assert [ErrorCode.UNSUPPORTED_VERSION] == [answer.error for answer in event.response.answers]
        assert not pair.leader.wire.aborted

    play(story)


def test_broker_that_knows_no_epochs_hangs_up_on_who_asks_for_them_all_the_same() -> None:
    leader = Client(rows=peer_rows("hw", PROTOCOLS["hw"]))
    leader.sends(asked(1))
    assert (True, []) == (leader.wire.aborted, leader.events)


@pytest.mark.parametrize(
    ("follower", "leader", "current"),
    [("kip320", "kip279", -1), ("kip279", "kip320", -1), ("kip320", "kip320", 6), ("kip380", "kip320", 6)],
)
def test_fetch_between_two_releases_is_fenced_only_where_both_know_the_fence(
    follower: str, leader: str, current: int
) -> None:
    def story() -> None:
        part = FetchPartition(tp=TP, fetch_offset=9, max_bytes=1, current_leader_epoch=6, log_start_offset=2)
        request = FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=0, max_bytes=1, partitions=(part,))
        (came,) = Pair(follower, leader).asks(request)
        assert replace(request, partitions=(replace(part, current_leader_epoch=current),)) == came

    play(story)


@pytest.mark.parametrize(("follower", "leader", "told"), [("kip380", "kip380", 9), ("kip380", "kip320", 0)])
def test_topics_id_is_named_only_where_both_know_of_it(follower: str, leader: str, told: int) -> None:
    """Source: KIP-516: without an id a topic is known by its name."""

    def story() -> None:
        part = FetchPartition(tp=TP, fetch_offset=9, max_bytes=1, log_start_offset=2, topic_id=9)
        fetch = FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=0, max_bytes=1, partitions=(part,))
        (came,) = Pair(follower, leader).asks(fetch)
        assert replace(fetch, partitions=(replace(part, topic_id=told),)) == came
        asked = replace(FENCED, questions=tuple(replace(each, topic_id=9) for each in FENCED.questions))
        (came,) = Pair(follower, leader).asks(asked, TOLD)
        assert isinstance(came, OffsetForLeaderEpochRequest)
        assert [told] == [each.topic_id for each in came.questions]
        stop = StopReplicaRequest(
            controller_id=1, controller_epoch=2, ack_timeout_ms=3, partitions=(StopReplica(tp=TP, topic_id=9),)
        )
        (came,) = Pair(follower, leader).asks(stop)
        assert isinstance(came, StopReplicaRequest) and [told] == [each.topic_id for each in came.partitions]

    play(story)


@pytest.mark.parametrize(
    ("controller", "broker", "told"),
    [("kip380", "kip380", 77), ("kip380", "kip320", -1), ("kip320", "kip380", -1)],
)
def test_command_names_the_registration_only_where_both_know_of_it(
    controller: str, broker: str, told: int
) -> None:
    """Source: KIP-380."""

    def story() -> None:
        commands = (
            LeaderAndIsrRequest(
                controller_id=1,
                controller_epoch=2,
                ack_timeout_ms=3,
                is_init=False,
                partitions=(),
                broker_epoch=77,
            ),
            StopReplicaRequest(
                controller_id=1, controller_epoch=2, ack_timeout_ms=3, partitions=(), broker_epoch=77
            ),
        )
        for command in commands:
            assert [replace(command, broker_epoch=told)] == Pair(controller, broker).asks(command)

    play(story)
