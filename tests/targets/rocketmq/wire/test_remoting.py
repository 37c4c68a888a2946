"""Requests and answers of one connection: each answer has the word of its request, in whatever order they come."""

from __future__ import annotations

import json
import random
import struct
from contextlib import suppress

import pytest

from harness.target.length_prefix import LENGTH_MAX
from harness.target.wire import UNKNOWN, Between, Direction, NotFramedError, Sender, Word
from targets.rocketmq.wire.frames import Code, written
from targets.rocketmq.wire.wire import LINKS, WIRE
from tests.targets.rocketmq.server import answer, frame
from tests.targets.rocketmq.wire.wire import CLIENTS, LINK, REMOTING, REPLICATION, Guarded, asked, given, of_kind


@pytest.fixture
def connection() -> Guarded:
    return of_kind(REMOTING)


def sends(connection: Guarded, frame: bytes) -> object:
    """Return what is seen of a frame of the side that dialled."""
    assert len(frame) == connection.size(frame, Direction.REQUEST)
    found = connection.read(frame, Direction.REQUEST)
    assert ("", ()) == (found.error, found.events)
    return found.seen


def hears(connection: Guarded, frame: bytes) -> object:
    """Return what is seen of a frame of the side that was dialled."""
    assert len(frame) == connection.size(frame, Direction.ANSWER)
    found = connection.read(frame, Direction.ANSWER)
    assert ("", ()) == (found.error, found.events)
    return found.seen


def errors(connection: Guarded, frame: bytes) -> tuple[str, str]:
    """Return why a frame cannot be read, in both directions."""
    found = [connection.read(frame, direction) for direction in Direction]
    assert [asked(UNKNOWN), given(UNKNOWN)] == [each.seen for each in found]
    return found[0].error, found[1].error


# --- words and numbers -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", Code)
def test_answer_has_the_word_and_the_number_of_its_request(connection: Guarded, code: Code) -> None:
    word = Word.COMMAND.value if code is Code.NotifyRoleChanged else code.name
    assert asked(word, correlation=7) == sends(connection, written(code, 7, {}, b"body"))
    assert given(word, correlation=7) == hears(connection, answer(7, body=b"body"))


def test_answers_may_come_in_another_order_and_be_no_success(connection: Guarded) -> None:
    for number, code in enumerate((Code.SendMessage, Code.PullMessage, Code.BrokerHeartbeat)):
        sends(connection, written(code, number, {}))
    for number, word in ((2, "BrokerHeartbeat"), (0, "SendMessage"), (1, "PullMessage")):
        assert given(word, correlation=number) == hears(connection, answer(number, 1, remark="no"))


def test_code_without_a_name_passes_with_its_number(connection: Guarded) -> None:
    assert asked("request-999", correlation=1) == sends(connection, written(999, 1, {}))
    assert given("request-999", correlation=1) == hears(connection, answer(1))


def test_answer_to_what_nobody_asked_has_no_word(connection: Guarded) -> None:
    assert given(UNKNOWN, correlation=5) == hears(connection, answer(5))


def test_request_that_is_sent_again_is_answered_twice(connection: Guarded) -> None:
    sends(connection, written(Code.AlterSyncStateSet, 7, {}))
    connection.reading.sent_again(7)
    for _ in range(2):
        assert given("AlterSyncStateSet", correlation=7) == hears(connection, answer(7))


def test_number_that_is_used_again_is_that_of_the_newer_request(connection: Guarded) -> None:
    sends(connection, written(Code.SendMessage, 7, {}))
    sends(connection, written(Code.PullMessage, 7, {}))
    assert given("PullMessage", correlation=7) == hears(connection, answer(7))


def test_side_that_was_dialled_may_ask_and_is_answered_without_a_word(connection: Guarded) -> None:
    sends(connection, written(Code.SendMessage, 7, {}))
    assert given(UNKNOWN) == hears(connection, written(40, 7, {}))
    assert asked(UNKNOWN) == sends(connection, answer(7))
    # Nor does its number take that of a request.
    assert given("SendMessage", correlation=7) == hears(connection, answer(7))


def test_frame_of_which_only_the_beginning_is_there_has_no_number_that_is_doubled(connection: Guarded) -> None:
    sent = written(Code.SendMessage, 7, {}, bytes(1000))
    assert asked("SendMessage") == connection.read(sent[:-1], Direction.REQUEST).seen
    assert given("SendMessage", correlation=7) == hears(connection, answer(7))


def test_beyond_the_bound_the_oldest_request_is_forgotten(
    connection: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("targets.rocketmq.wire.remoting.PENDING_REQUESTS_MAX", 3)
    for number in range(4):
        sends(connection, written(Code.SendMessage, number, {}))
    words = [UNKNOWN, "SendMessage", "SendMessage", "SendMessage"]
    assert [given(word, correlation=at) for at, word in enumerate(words)] == [
        hears(connection, answer(at)) for at in range(4)
    ]


def test_connections_have_numbers_of_their_own() -> None:
    hearing = WIRE.hear({})
    one, other = hearing.reading(REMOTING, LINK), hearing.reading(REMOTING, LINK)
    assert one is not None and other is not None
    one.read(written(Code.SendMessage, 1, {}), Direction.REQUEST)
    assert UNKNOWN == other.read(answer(1), Direction.ANSWER).seen.api


# --- sizes -----------------------------------------------------------------------------------------------------
def test_size_is_known_with_the_first_four_bytes(connection: Guarded) -> None:
    sent = written(Code.SendMessage, 7, {}, b"value")
    for direction in Direction:
        assert [0] * 4 + [len(sent)] * 3 == [connection.size(sent[:have], direction) for have in range(7)]
        assert len(sent) == connection.size(b"before" + sent + b"behind", direction, 6)


@pytest.mark.parametrize("length", [-1, -(2**31), LENGTH_MAX + 1, 2**31 - 1])
def test_length_that_no_frame_has_is_no_frame(connection: Guarded, length: int) -> None:
    with pytest.raises(NotFramedError, match=f"frame length {length}; expected a frame"):
        connection.size(struct.pack(">i", length), Direction.REQUEST)


# --- what cannot be read ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sent",
    [
        frame(b"no JSON"),
        frame(b"[]"),
        frame(b"{}"),
        frame(b"[" * 50_000),
        frame(b'{"code": 10, "opaque": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
        frame(b""),
        b"\0\0\0\0",
        b"\0\0\0\x03abc",
        b"\0\0\0\x04" + struct.pack(">I", 100),
        b"\0\0\0\x06" + struct.pack(">I", 5) + b"{}",
        b"\0\0\0\x06\x01\0\0\x02{}",
    ],
)
def test_frame_that_cannot_be_read_is_said_and_the_next_one_is_read(connection: Guarded, sent: bytes) -> None:
    assert all(errors(connection, sent))
    assert len(sent) == connection.size(sent, Direction.REQUEST)
    assert asked("SendMessage", correlation=1) == sends(connection, written(Code.SendMessage, 1, {}))


def test_number_without_an_end_is_said(connection: Guarded) -> None:
    assert all(errors(connection, frame(b'{"code": 10, "opaque": 1e999}')))


def test_frame_that_is_cut_anywhere_is_read_or_is_said_to_be_unreadable() -> None:
    sent = written(Code.SendMessage, 7, {"topic": "log"}, b"value")
    begins = len(sent) - len(b"value")
    for cut in range(len(sent)):
        connection = of_kind(REMOTING)
        found = connection.read(sent[:cut], Direction.REQUEST)
        assert (cut < begins) is bool(found.error)
        assert (asked(UNKNOWN) if cut < begins else asked("SendMessage")) == found.seen


# --- anything --------------------------------------------------------------------------------------------------
def test_random_bytes_raise_nothing_but_that_they_are_not_framed() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        data = chance.randbytes(chance.randrange(60))
        with suppress(NotFramedError):
            of_kind(chance.choice([REMOTING, CLIENTS])).stream(data, chance.choice([*Direction]))


def test_random_heads_raise_nothing() -> None:
    chance = random.Random(2)
    scalars = [None, 0, -1, 7, 1.5, 1e300, 2**70, "", "x", "7", [], [1], {}, {"a": 1}, True]
    keys = ["code", "opaque", "flag", "extFields", "remark", "language"]
    connection = of_kind(REMOTING)
    for _ in range(3000):
        head = {key: chance.choice(scalars) for key in keys if chance.random() < 0.8}
        sent = frame(json.dumps(head).encode(), chance.randbytes(chance.randrange(9)))
        connection.read(sent, chance.choice([*Direction]))


def test_changed_bytes_of_a_frame_raise_nothing() -> None:
    chance = random.Random(3)
    whole = written(Code.SendMessage, 7, {"topic": "log"}, b"value")
    for _ in range(3000):
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            changed[chance.randrange(len(changed))] = chance.choice([0, 0x22, 0x7B, 0x7D, chance.randrange(256)])
        with suppress(NotFramedError):
            of_kind(REMOTING).stream(bytes(changed), chance.choice([*Direction]))


# --- the wire --------------------------------------------------------------------------------------------------
def test_nodes_have_two_links_by_hosts_and_clients_one() -> None:
    assert [("listenPort", True), ("haListenPort", False)] == [
        (kind.name, kind.with_clients) for kind in LINKS if kind.between is Between.NODES
    ]
    assert {Sender.HOST} == {kind.sender for kind in LINKS if kind.between is Between.NODES}
    assert [REMOTING, REPLICATION] == [kind for kind in LINKS if kind.sender is Sender.HOST]
    assert [CLIENTS] == [kind for kind in LINKS if kind.between is Between.CLIENTS]


def test_what_clients_say_is_not_read() -> None:
    connection = of_kind(CLIENTS)
    sent = written(Code.SendMessage, 7, {}, b"value")
    assert asked(UNKNOWN) == sends(connection, sent)
    assert given(UNKNOWN) == hears(connection, frame(b"no JSON"))


def test_what_stands_for_a_general_word_is_what_frames_are_called() -> None:
    stands = WIRE.stands({})
    assert {*Word} == {*stands}
    assert {Word.STOP, Word.METADATA_REQUEST} == {word for word, each in stands.items() if not each.api}
    assert stands[Word.EPOCH_QUESTION] == stands[Word.QUESTION]
    assert "NotifyRoleChanged" == stands[Word.COMMAND].own
    assert all(each.own for each in stands.values())
