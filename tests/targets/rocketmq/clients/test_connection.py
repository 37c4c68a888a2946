"""What a connection takes from the other side: the answer to its question, in time, and no more than it bounds."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness.target.log_client import Refused
from targets.rocketmq.clients.connection import ANSWER_BYTES_MAX, AnswerError, Connection, ask_once, object_in
from targets.rocketmq.wire.frames import Code, Frame, written
from tests.targets.rocketmq.server import (
    Asked,
    Serve,
    Served,
    Talk,
    answer,
    answers,
    frame,
    hangs_up,
    is_silent,
    nobody,
    says,
    server,
)

PATIENCE_S = 20.0
LITTLE_S = 0.05


@contextmanager
def connected(serve: Serve) -> Iterator[tuple[Served, Connection]]:
    with server(serve) as served, closing(Connection(str(served.address), PATIENCE_S)) as connection:
        yield served, connection


def asks(connection: Connection, within_s: float = PATIENCE_S) -> Frame:
    return connection.ask(Code.GetEpochCache, {"brokerName": "brokers"}, b"body", within_s)


# --- answers ---------------------------------------------------------------------------------------------------
def test_answer_comes_back_whole_whatever_its_code() -> None:
    body = bytes(range(256)) * 5000
    with connected(answers(12, {"queueOffset": "7"}, body, "late")) as (served, connection):
        found = asks(connection)
    assert (12, 1, True, "7", "late", body) == (
        found.code,
        found.number,
        found.answers,
        found.fields["queueOffset"],
        found.remark,
        found.body,
    )
    (asked,) = served.asked
    assert ("GetEpochCache", {"brokerName": "brokers"}, b"body") == (asked.what, asked.fields, asked.body)


def test_each_question_has_a_new_number() -> None:
    with connected(answers()) as (served, connection):
        assert [1, 2, 3] == [asks(connection).number for _ in range(3)]
    assert ([1, 2, 3], 1) == ([each.number for each in served.asked], len(served.talks))


def test_answer_in_pieces_is_put_together() -> None:
    def serve(talk: Talk, asked: Asked) -> None:
        for byte in answer(asked.number, body=b"abc"):
            talk.send(bytes((byte,)))

    with connected(serve) as (_, connection):
        assert b"abc" == asks(connection).body


def test_what_a_broker_asks_meanwhile_and_answers_to_others_are_passed_over() -> None:
    def serve(talk: Talk, asked: Asked) -> None:
        talk.send(written(40, asked.number, {}), answer(asked.number + 1, body=b"other"), answer(-1))
        talk.send(answer(asked.number, body=b"right"))

    with connected(serve) as (_, connection):
        assert b"right" == asks(connection).body


# --- what goes wrong -------------------------------------------------------------------------------------------
def test_connection_that_cannot_be_made_is_a_refusal() -> None:
    with nobody() as address, pytest.raises(Refused, match=f"^{address}: .*refused; expected a connection$"):
        Connection(str(address), PATIENCE_S)


@pytest.mark.parametrize(
    "serve",
    [is_silent, says(b"\0\0\0"), says(answer(1)[:-1]), says(answer(2)), says(written(40, 1, {}))],
    ids=["silent", "begins", "half", "answers another", "asks"],
)
def test_answer_that_does_not_come_in_time_is_not_waited_for_longer(serve: Serve) -> None:
    with connected(serve) as (_, connection), pytest.raises(TimeoutError, match=r"no answer|timed out"):
        asks(connection, LITTLE_S)


def test_other_side_that_never_stops_talking_is_not_waited_for_longer() -> None:
    def serve(talk: Talk, _asked: Asked) -> None:
        while True:
            talk.send(answer(99))

    with connected(serve) as (_, connection), pytest.raises(TimeoutError):
        asks(connection, LITTLE_S)


def test_connection_that_is_hung_up_is_an_error_of_the_system() -> None:
    with (
        connected(hangs_up) as (_, connection),
        pytest.raises(ConnectionError, match=r"hung up after 0 of 8|reset"),
    ):
        asks(connection)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"\xff" * 100,
        bytes(100),
        *(struct.pack(">iI", length, 0) for length in (-1, 0, 3, -(2**31), ANSWER_BYTES_MAX + 1, 2**31 - 1)),
        struct.pack(">II", 3 * 1024**3, 100),
        # Heads that are longer than their frame, or none, or no JSON, or spelled in another way.
        struct.pack(">iI", 10, 7) + b"abcdef",
        struct.pack(">iI", 10, 0xFFFFFF) + b"abcdef",
        struct.pack(">iI", 4, 0),
        frame(b"no JSON"),
        frame(b"{}"),
        frame(b"[" * 50_000),
        struct.pack(">iI", 6, 1 << 24 | 2) + b"{}",
    ],
)
def test_answer_that_is_none_is_an_error_of_the_system_and_little_is_taken_of_it(said: bytes) -> None:
    with connected(says(said)) as (_, connection):

        def ask() -> None:
            with pytest.raises(OSError, match=r"^answer of -?\d+ bytes.*; expected|^answer of -?\d+ bytes: "):
                asks(connection)

        bounded_by(1_000_000, ask)


def bounded_by(bytes_max: int, ask: Callable[[], object]) -> None:
    """Check that a call takes no more memory than this."""
    tracemalloc.start()
    try:
        ask()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < bytes_max


def test_answer_that_claims_much_and_brings_little_takes_little() -> None:
    said = struct.pack(">iI", ANSWER_BYTES_MAX, 100) + bytes(1000)
    with connected(says(said)) as (_, connection):

        def ask() -> None:
            with pytest.raises(TimeoutError):
                asks(connection, LITTLE_S)

        bounded_by(3_000_000, ask)


def test_connection_can_be_closed_twice() -> None:
    with connected(answers()) as (_, connection):
        connection.close()
        connection.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            asks(connection)


# --- asked once ------------------------------------------------------------------------------------------------
def test_question_of_its_own_connection_is_answered_and_hung_up() -> None:
    with server(answers(body=b"x")) as served:
        for _ in range(2):
            found = ask_once(str(served.address), Code.GetReplicaInfo, {"a": 1}, b"[]", within_s=PATIENCE_S)
            assert b"x" == found.body
        assert (2, [b"[]"] * 2) == (len(served.talks), [each.body for each in served.asked])


def test_answer_that_is_no_success_is_an_error_with_its_code_in_one_line() -> None:
    remark = "not\n enough\t" + "x" * 999
    with server(answers(2012, remark=remark)) as served, pytest.raises(AnswerError) as raised:
        ask_once(str(served.address), Code.ElectMaster, {}, within_s=PATIENCE_S)
    assert (2012, remark) == (raised.value.code, raised.value.remark)
    assert f"code 2012: not enough {'x' * 189}" == str(raised.value)
    assert not isinstance(raised.value, Refused)


@pytest.mark.parametrize(
    ("body", "expected"), [(b"", {}), (b"{}", {}), (b'{"a": [1]}', {"a": [1]}), (b' {"a": null}\n', {"a": None})]
)
def test_object_of_a_body_is_read_and_nothing_is_an_empty_one(body: bytes, expected: object) -> None:
    assert expected == object_in(body)


@pytest.mark.parametrize("body", [b"[]", b"7", b"null", b'"x"', b"{", b"no JSON", b"\xff\xfe", b"[" * 100_000])
def test_body_that_is_no_object_is_as_no_answer(body: bytes) -> None:
    with pytest.raises(OSError, match=r"; expected JSON$|; expected an object$") as raised:
        object_in(body)
    assert len(str(raised.value)) < 999
