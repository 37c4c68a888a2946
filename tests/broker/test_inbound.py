"""Connections of clients, followers and controllers: requests in, answers out in order."""

from __future__ import annotations

import struct

import pytest

from targets.broker.core.events import Caller, Hungup, Received
from targets.broker.core.messages import (
    ProduceRequest,
)
from tests.broker.wires import Client, api_versions, asked, produce, question, replied, reply

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
    client.inbound._post = lambda _: client.inbound.answer(reply(0))
    client.sends(*(asked(epoch) for epoch in range(1, 6)))
    assert [1, 2, 3, 4, 5] == client.wire.answered


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
