"""Connections of clients, followers and controllers: requests in, answers out in order."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core.events import ANYBODY, Caller, Hungup, Misdirected, Received
from targets.broker.core.messages import (
    ErrorCode,
    MetadataResponse,
    PartitionMetadata,
    ProduceRequest,
    TopicMetadata,
    TopicPartition,
)
from targets.broker.inbound import ITEMS_MAX, TURN_REQUESTS_MAX
from targets.broker.limits import Limits
from targets.broker.wire.frames import EAGER_BYTES
from tests.broker.wires import Client, House, api_versions, asked, produce, question, replied, reply

GARBAGE = {
    "negative length": b"\xff\xff\xff\xff",
    "length beyond every request": struct.pack(">i", 2**31 - 1),
    "request too short for a header": struct.pack(">i", 3) + b"abc",
    "unknown api": struct.pack(">ihhih", 10, 99, 0, 1, -1),
    "version that is not served": struct.pack(">ihhih", 10, 0, 0, 1, -1),
    "body cut short": struct.pack(">i", len(asked(1)) - 5) + asked(1)[4:-1],
    "bytes after the body": struct.pack(">i", len(asked(1)) - 3) + asked(1)[4:] + b"x",
    "text": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_ends_only_its_own_connection(garbage: bytes) -> None:
    bad, good = Client(1), Client(2)
    bad.sends(garbage)
    good.sends(asked(1))
    assert (True, []) == (bad.wire.aborted, bad.events)
    assert (False, [1]) == (good.wire.aborted, good.epochs)


def test_request_that_comes_byte_by_byte_is_taken_up_once_it_is_whole() -> None:
    client, frame = Client(), asked(5)
    for at in range(len(frame)):
        assert [] == client.epochs
        client.sends(frame[at : at + 1])
    assert [5] == client.epochs


def test_pipelined_requests_are_under_way_one_at_a_time_and_answered_in_order() -> None:
    client = Client()
    client.sends(asked(1), asked(2), asked(3))
    for epoch in (1, 2, 3):
        assert list(range(1, epoch + 1)) == client.epochs
        client.inbound.answer(reply(epoch))
    assert [replied(epoch, epoch) for epoch in (1, 2, 3)] == client.wire.written
    assert [Caller(connection=1, number=number) for number in (1, 2, 3)] == [
        event.caller for event in client.events if isinstance(event, Received)
    ]


def test_requests_that_are_answered_while_they_are_posted_are_answered_in_order() -> None:
    client = Client()
    client.inbound._common = replace(client.house.common, post=lambda _: client.inbound.answer(reply(0)))
    client.sends(*(asked(epoch) for epoch in range(1, 6)))
    assert [1, 2, 3, 4, 5] == client.wire.answered


@pytest.mark.parametrize("of_clients", [True, False])
def test_core_is_told_by_which_listener_a_request_came_and_whom_it_names(*, of_clients: bool) -> None:
    client = Client(house=House(of_clients=of_clients))
    client.sends(asked(5, "broker-2-controller-to-8"))
    (event,) = client.events
    assert isinstance(event, Received)
    # A client may call itself as it likes.
    assert (of_clients, ANYBODY if of_clients else 8) == (event.of_client, event.meant_for)


@pytest.mark.parametrize(("name", "meant"), [("broker-2-fetcher-to-1", 1), ("broker-2-fetcher-to-8", 8), ("x", 1)])
def test_versions_are_told_to_those_alone_that_mean_this_broker(name: str, meant: int) -> None:
    """Whoever took them for another broker's would ask that one, once it is reached, in these versions."""
    client = Client(house=House(of_clients=False))
    client.sends(api_versions(1, name))
    expected: list[Any] = [] if meant == 1 else [Misdirected(connection=1, meant_for=8)]
    assert (expected, [1] if meant == 1 else []) == (client.events, client.wire.answered)


def test_what_the_wire_answers_by_itself_waits_for_its_turn() -> None:
    client = Client()
    client.sends(api_versions(1), asked(2), api_versions(3), asked(4))
    assert ([1], [2]) == (client.wire.answered, client.epochs)
    client.inbound.answer(reply(0))
    assert ([1, 2, 3], [2, 4]) == (client.wire.answered, client.epochs)


def test_produce_with_acks_0_gets_no_answer_and_does_not_block_the_next() -> None:
    client = Client()
    client.sends(produce(acks=0), asked(7))
    first, second = (event.request for event in client.events if isinstance(event, Received))
    assert isinstance(first, ProduceRequest)
    assert (0, question(7)) == (first.acks, second)
    client.inbound.answer(reply(3))
    assert [replied(7, 3)] == client.wire.written


def test_produce_with_acks_1_blocks_the_next() -> None:
    client = Client()
    client.sends(produce(acks=1), asked(7))
    assert (1, []) == (len(client.events), client.epochs)


def test_client_that_does_not_wait_is_read_no_further_until_none_waits() -> None:
    """Source: Kafka's SocketServer mutes a connection for as long as a request of it is under way."""
    client = Client()
    client.sends(asked(1))
    assert client.wire.reading  # with one request in progress, a disconnect must still be noticed
    client.sends(asked(2), asked(3))
    assert not client.wire.reading
    client.inbound.answer(reply(1))
    assert not client.wire.reading
    client.inbound.answer(reply(2))
    assert client.wire.reading
    client.inbound.answer(reply(3))
    client.sends(asked(4), asked(5))
    assert not client.wire.reading


def test_client_that_reads_no_answers_is_served_no_further_until_it_does() -> None:
    client = Client()
    client.sends(asked(1), asked(2), asked(3))
    client.inbound.pause_writing()
    client.inbound.answer(reply(1))
    assert ([1], [1]) == (client.epochs, client.wire.answered)
    client.inbound.resume_writing()
    assert [1, 2] == client.epochs
    client.inbound.answer(reply(2))
    assert [1, 2, 3] == client.epochs


def test_connection_that_ends_is_told_of_and_nothing_more_of_it_is_taken_up() -> None:
    client = Client(4)
    client.sends(asked(1), asked(2))
    client.inbound.connection_lost(None)
    client.inbound.answer(reply(1))
    client.inbound.resume_writing()
    assert ([4], [1], []) == (client.gone, client.epochs, client.wire.written)
    assert Hungup(connection=4) == client.events[-1]


def test_answer_that_nobody_waits_for_is_not_sent() -> None:
    client = Client()
    client.inbound.answer(reply(1))
    assert [] == client.wire.written


# --- many ------------------------------------------------------------------------------------------------------
def on_a_loop(play: Callable[[], Any]) -> None:
    """Run a test's coroutine function."""

    async def run() -> None:
        await play()

    asyncio.run(run())


async def turns(until: Callable[[], bool]) -> int:
    """Let the loop turn until a condition holds; return how often it turned."""
    for turn in range(100_000):
        if until():
            return turn
        await asyncio.sleep(0)
    raise AssertionError("the loop turned and turned, and the condition does not hold")


def test_connection_without_a_place_is_closed_and_nothing_of_it_is_taken_up() -> None:
    house = House(Limits(connections_max=1))
    first, second = Client(1, house=house), Client(2, house=house)
    assert (False, True) == (first.wire.aborted, second.wire.aborted)
    second.sends(asked(1))
    second.inbound.connection_lost(None)
    assert ([], [2]) == (house.events, second.gone)
    first.inbound.connection_lost(None)
    assert not Client(3, house=house).wire.aborted


def test_requests_that_came_at_once_are_taken_up_a_few_in_each_turn() -> None:
    async def play() -> None:
        client = Client()
        client.inbound._common = replace(client.house.common, post=lambda _: client.inbound.answer(reply(0)))
        many = 3 * TURN_REQUESTS_MAX
        client.sends(*(asked(epoch) for epoch in range(many)))
        assert TURN_REQUESTS_MAX == len(client.wire.answered)
        assert not client.wire.reading
        assert 2 == await turns(lambda: len(client.wire.answered) == many)
        assert list(range(many)) == client.wire.answered
        assert client.wire.reading

    on_a_loop(play)


def metadata_request(correlation_id: int, topics: int) -> bytes:
    """Return a Metadata v1 request, written by hand."""
    body = struct.pack(">hhih1si", 3, 1, correlation_id, 1, b"x", topics)
    body += b"".join(struct.pack(">h6s", 6, b"%06d" % number) for number in range(topics))
    return struct.pack(">i", len(body)) + body


def test_request_with_much_in_it_is_read_on_a_thread_and_keeps_its_place() -> None:
    async def play() -> None:
        client, other = Client(1), Client(2)
        client.sends(metadata_request(1, 9_000), asked(2))
        assert [] == client.events
        other.sends(asked(9))
        assert [9] == other.epochs
        await turns(lambda: bool(client.events))
        assert 9_000 == len(client.events[0].request.topics)  # type: ignore[union-attr]
        assert [] == client.epochs
        client.inbound.answer(MetadataResponse(brokers=(), controller_id=1, topics=()))
        assert [2] == client.epochs

    on_a_loop(play)


def test_request_that_is_wrong_and_read_on_a_thread_ends_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def play() -> None:
        client = Client()
        client.sends(metadata_request(1, 10_001))
        await turns(lambda: client.wire.aborted)
        assert [] == client.events

    on_a_loop(play)
    assert "expected at most 10000 (request_items_max)" in caplog.text


def test_connection_that_ends_while_a_thread_reads_its_request_is_forgotten() -> None:
    async def play() -> None:
        client = Client()
        client.sends(metadata_request(1, 9_000))
        client.inbound.connection_lost(None)
        await turns(lambda: client.inbound._away is None)
        assert [Hungup(connection=1)] == client.events

    on_a_loop(play)


def test_long_answer_is_written_on_a_thread_before_the_next_request() -> None:
    partitions = tuple(
        PartitionMetadata(
            tp=TopicPartition("t", number), error=ErrorCode.NONE, leader=1, leader_epoch=1, replicas=(1,), isr=(1,)
        )
        for number in range(ITEMS_MAX)
    )
    topic = TopicMetadata(topic="t", error=ErrorCode.NONE, partitions=partitions)

    async def play() -> None:
        client = Client()
        client.sends(metadata_request(1, 1), asked(2))
        client.inbound.answer(MetadataResponse(brokers=(), controller_id=1, topics=(topic,)))
        assert ([], []) == (client.wire.written, client.epochs)
        await turns(lambda: bool(client.epochs))
        assert [1] == client.wire.answered
        assert len(client.wire.written[0]) > 20 * ITEMS_MAX

    on_a_loop(play)


def test_handler_of_bytes_that_raises_ends_its_connection_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a bug")

    good = Client(2)
    monkeypatch.setattr("targets.broker.inbound.decode_request", broken)
    bad = Client(1)
    bad.sends(asked(1))
    assert (True, False) == (bad.wire.aborted, good.wire.aborted)
    assert "connection 1: closing it" in caplog.text and "a bug" in caplog.text


def test_nothing_is_taken_up_behind_a_request_that_is_wrong() -> None:
    client = Client()
    client.sends(asked(1), struct.pack(">ihhih", 10, 99, 0, 1, -1), asked(2))
    client.inbound.answer(reply(1))
    assert (True, [1]) == (client.wire.aborted, client.epochs)


def test_answer_that_cannot_be_written_ends_its_connection_alone() -> None:
    client = Client()
    client.sends(asked(1))
    client.inbound.answer(reply(2**70))
    assert client.wire.aborted


# --- memory ----------------------------------------------------------------------------------------------------
def begins(size: int) -> bytes:
    """Return the beginning of a large request."""
    return size.to_bytes(4) + b"x"


def test_large_requests_wait_for_memory_and_go_on_one_after_the_other() -> None:
    house = House(Limits(memory_bytes_max=EAGER_BYTES, request_bytes_max=EAGER_BYTES))
    first, second, third = (Client(number, house=house) for number in (1, 2, 3))
    for client in (first, second, third):
        client.sends(begins(EAGER_BYTES))
    assert [True, False, False] == [client.wire.reading for client in (first, second, third)]
    small = Client(4, house=house)
    small.sends(asked(4))
    assert [4] == small.epochs
    first.inbound.connection_lost(None)
    assert [True, False] == [client.wire.reading for client in (second, third)]
    second.inbound.connection_lost(None)
    assert third.wire.reading


def test_who_holds_memory_that_others_wait_for_is_closed_in_the_end() -> None:
    house = House(Limits(memory_bytes_max=EAGER_BYTES, unread_answer_ms_max=5_000))
    stuck, waiting = Client(1, house=house), Client(2, house=house)
    for client in (stuck, waiting):
        client.sends(begins(EAGER_BYTES))
    house.now = 5.0
    house.connections.sweep()
    assert (True, False) == (stuck.wire.aborted, waiting.wire.aborted)


def test_answers_that_nobody_reads_take_the_room_of_others() -> None:
    house = House(Limits(memory_bytes_max=1_000))
    client = Client(1, house=house)
    client.wire.unsent = 600
    client.sends(asked(1))
    client.inbound.answer(reply(1))
    assert 400 == house.connections.memory.room()
    client.wire.unsent = 0
    assert 1_000 == house.connections.memory.room()
