"""What a connection takes from a server: a greeting, messages, words between them, and no more than it bounds."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from harness.target.log_client import Refused
from targets.nats.clients.connection import (
    LINE_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    SYSTEM,
    Connection,
    NoRespondersError,
    answer_of,
)
from tests.targets.nats.server import (
    ID,
    INFO,
    NO_RESPONDERS,
    Asked,
    Serve,
    Served,
    Talk,
    answers,
    hangs_up,
    is_silent,
    knows_nobody,
    nobody,
    server,
)

PATIENCE_S = 20.0
LITTLE_S = 0.05


@contextmanager
def connected(serve: Serve = is_silent, patience_s: float = PATIENCE_S) -> Iterator[tuple[Served, Connection]]:
    with server(serve) as served, closing(Connection(str(served.address), patience_s)) as connection:
        yield served, connection


def raw(*said: bytes) -> Serve:
    """Return what answers with these bytes, in which REPLY stands for the subject that waits."""
    return lambda talk, asked: talk.send(*(each.replace(b"REPLY", asked.reply.encode()) for each in said))


# --- greeting --------------------------------------------------------------------------------------------------
def test_client_introduces_itself_without_a_user_and_knows_the_server_s_id() -> None:
    with connected() as (served, connection):
        assert ID == connection.server
        (talk,) = served.talks
        assert {"verbose": False, "headers": True, "no_responders": True} == {
            key: talk.hello[key] for key in ("verbose", "headers", "no_responders")
        }
        assert {"user", "pass"}.isdisjoint(talk.hello)
        assert [b"CONNECT", b"SUB", b"PING"] == [line.split()[0] for line in talk.lines]


def test_user_of_the_system_account_gives_its_password() -> None:
    with server() as served, closing(Connection(str(served.address), PATIENCE_S, user=SYSTEM)):
        assert (SYSTEM, SYSTEM) == (served.talks[0].hello["user"], served.talks[0].hello["pass"])


def test_two_connections_wait_for_replies_at_subjects_of_their_own() -> None:
    with connected() as (served, _), closing(Connection(str(served.address), PATIENCE_S)):
        subjects = [line.split()[1] for talk in served.talks for line in talk.lines if line.startswith(b"SUB")]
    assert (2, 2) == (len(subjects), len({*subjects}))


def test_what_comes_before_the_server_is_ready_is_passed_over() -> None:
    with (
        server(answers({"a": 1}), pong=b"PING\r\n+OK\r\nINFO {}\r\nPONG\r\n") as served,
        closing(Connection(str(served.address), PATIENCE_S)) as connection,
    ):
        assert b'{"a": 1}' == connection.ask("any", within_s=PATIENCE_S)


@pytest.mark.parametrize(
    "greeting",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\r\n",
        b"-ERR 'maximum connections exceeded'\r\n",
        b"INFO\r\n",
        b"INFO {\r\n",
        b"INFO no JSON\r\n",
        b"INFO \xff\xfe\r\n",
        b"INFO " + b"[" * 200_000 + b"\r\n",
        b"info {}\r\n",
    ],
)
def test_greeting_that_is_no_server_s_is_a_refusal_in_one_line(greeting: bytes) -> None:
    with server(greeting=greeting) as served, pytest.raises(Refused, match=r"; expected a NATS server$") as raised:
        Connection(str(served.address), PATIENCE_S)
    assert str(raised.value).startswith(f"{served.address}: ")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("told", [b"{}", b"[]", b"7", b'{"server_id": null}'])
def test_server_that_does_not_say_who_it_is_is_a_server_all_the_same(told: bytes) -> None:
    with (
        server(greeting=b"INFO " + told + b"\r\n") as served,
        closing(Connection(str(served.address), PATIENCE_S)) as connection,
    ):
        assert isinstance(connection.server, str)


def test_connection_that_cannot_be_made_is_a_refusal() -> None:
    with nobody() as address, pytest.raises(Refused, match=f"^{address}: .*refused; expected a connection$"):
        Connection(str(address), PATIENCE_S)


@pytest.mark.parametrize(
    "pong", [b"", b"-ERR 'Authorization Violation'\r\n"], ids=["says nothing", "lets nobody in"]
)
def test_server_that_does_not_get_ready_is_a_refusal(pong: bytes) -> None:
    with server(pong=pong) as served, pytest.raises(Refused, match=r"expected a NATS server$"):
        Connection(str(served.address), LITTLE_S)


def test_server_that_lets_nobody_in_says_why() -> None:
    with (
        server(pong=b"-ERR 'Authorization Violation'\r\n") as served,
        pytest.raises(Refused, match="Authorization Violation"),
    ):
        Connection(str(served.address), PATIENCE_S)


# --- answers ---------------------------------------------------------------------------------------------------
def test_answer_to_a_question_comes_back_with_what_was_asked() -> None:
    asked: list[Asked] = []

    def serve(talk: Talk, one: Asked) -> None:
        asked.append(one)
        talk.tell(one, b"the answer")

    with connected(serve) as (_, connection):
        assert b"the answer" == connection.ask("$JS.API.X", {"a": 1}, within_s=PATIENCE_S)
        assert b"the answer" == connection.ask("log-0", b"bytes\r\n", within_s=PATIENCE_S)
    assert [("$JS.API.X", b'{"a": 1}'), ("log-0", b"bytes\r\n")] == [(one.subject, one.payload) for one in asked]
    assert 2 == len({one.reply for one in asked})


@pytest.mark.parametrize("headers", [b"", b"NATS/1.0\r\nNats-Sequence: 3\r\n\r\n"])
@pytest.mark.parametrize("payload", [b"", b"x", b"a\r\nMSG b 1 1\r\n", bytes(range(256)) * 4000])
def test_message_with_and_without_headers_is_whole(headers: bytes, payload: bytes) -> None:
    with connected(lambda talk, asked: talk.tell(asked, payload, headers)) as (_, connection):
        number = connection.publish("any")
        assert (number, headers, payload) == connection.receive(time.monotonic() + PATIENCE_S)


def test_server_that_asks_whether_its_client_lives_hears_that_it_does() -> None:
    def serve(talk: Talk, asked: Asked) -> None:
        talk.send(b"PING\r\n", b"+OK\r\n", b"INFO {}\r\n")
        talk.tell(asked, b"answer")

    with connected(serve) as (served, connection):
        assert b"answer" == connection.ask("any", within_s=PATIENCE_S)
        assert b"answer" == connection.ask("any", within_s=PATIENCE_S)
        assert 1 <= served.talks[0].lines.count(b"PONG") <= 2


def test_answer_to_an_older_question_is_passed_over() -> None:
    asked: list[Asked] = []

    def serve(talk: Talk, one: Asked) -> None:
        asked.append(one)
        if len(asked) == 2:
            for said, each in zip((b"late", b"new"), asked, strict=True):
                talk.tell(each, said)

    with connected(serve) as (_, connection):
        with pytest.raises(TimeoutError):
            connection.ask("any", within_s=LITTLE_S)
        assert b"new" == connection.ask("any", within_s=PATIENCE_S)


def test_message_in_pieces_is_put_together() -> None:
    def serve(talk: Talk, asked: Asked) -> None:
        for byte in b"MSG " + asked.reply.encode() + b" 1 3\r\nabc\r\n":
            talk.send(bytes([byte]))

    with connected(serve) as (_, connection):
        assert b"abc" == connection.ask("any", within_s=PATIENCE_S)


def test_nobody_who_could_answer_is_told_apart_from_an_answer() -> None:
    with connected(knows_nobody) as (_, connection):
        with pytest.raises(NoRespondersError, match=r"^\$JS\.API\.X: no responders$"):
            connection.ask("$JS.API.X", within_s=PATIENCE_S)
        came = connection.publish("other"), connection.receive(time.monotonic() + PATIENCE_S)
        assert (came[0], NO_RESPONDERS) == came[1][:2]
        with pytest.raises(NoRespondersError):
            answer_of("other", came[1])


# --- what goes wrong -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("serve", "error"),
    [
        (is_silent, TimeoutError),
        (raw(b"MSG REPLY 1 5\r\nab"), TimeoutError),
        (raw(b"PING\r\n"), TimeoutError),
        (raw(b"MSG other.7 1 2\r\nab\r\n"), TimeoutError),
    ],
    ids=["silent", "half", "asks", "others"],
)
def test_server_from_which_no_answer_comes_in_time(serve: Serve, error: type[Exception]) -> None:
    with connected(serve) as (_, connection), pytest.raises(error, match=r"no answer in time|timed out"):
        connection.ask("any", within_s=LITTLE_S)


def test_server_that_never_stops_talking_is_not_waited_for_longer() -> None:
    def serve(talk: Talk, _asked: Asked) -> None:
        while True:
            talk.send(b"PING\r\n")

    with connected(serve) as (_, connection), pytest.raises(TimeoutError):
        connection.ask("any", within_s=LITTLE_S)


@pytest.mark.parametrize(
    ("serve", "says"),
    [
        (hangs_up, "hung up|reset by peer"),
        (raw(b"-ERR 'Stale Connection'\r\n"), "the server says b\"-ERR 'Stale Connection'\"$"),
        (raw(b"-ERR '" + b"x" * 9999 + b"'\r\n"), 'the server says b"-ERR \'x{194}"$'),
    ],
)
def test_connection_that_is_lost_is_an_error_of_the_system(serve: Serve, says: str) -> None:
    with connected(serve) as (_, connection), pytest.raises(ConnectionError, match=says):
        connection.ask("any", within_s=PATIENCE_S)


@pytest.mark.parametrize(
    "line",
    [
        b"MSG",
        b"MSG REPLY",
        b"HMSG REPLY 1",
        b"HMSG",
        b"MSG REPLY 1 -1",
        b"MSG REPLY 1 1e3",
        b"MSG REPLY 1 x",
        b"HMSG REPLY 1 x 3",
        b"HMSG REPLY 1 3 x",
        b"HMSG REPLY 1 9 3",
        b"MSG REPLY 1 " + b"9" * 5000,
        b"MSG " + b"9" * 5000 + b" 1 " + b"9" * 5000,
    ],
)
def test_line_that_none_says_is_an_error_of_the_system_in_one_line(line: bytes) -> None:
    serve = raw(line + b"\r\nabc\r\n")
    with connected(serve) as (_, connection), pytest.raises(OSError, match="; expected") as raised:
        connection.ask("any", within_s=PATIENCE_S)
    assert len(str(raised.value)) < 300


def test_message_for_a_subject_without_a_number_is_nobody_s_answer() -> None:
    serve = raw(b"MSG other 1 1\r\na\r\n", b"MSG " + b"9" * 5000 + b" 1 1\r\nb\r\n", b"MSG REPLY 1 1\r\nc\r\n")
    with connected(serve) as (_, connection):
        assert b"c" == connection.ask("any", within_s=PATIENCE_S)


def bounded_by(bytes_max: int, ask: Callable[[], object]) -> None:
    """Check that a call takes no more memory than this."""
    tracemalloc.start()
    try:
        ask()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < bytes_max


@pytest.mark.parametrize("size", [MESSAGE_BYTES_MAX + 1, 2**31, 10**18])
@pytest.mark.parametrize("verb", [b"MSG REPLY 1 ", b"HMSG REPLY 1 7 "])
def test_message_that_is_too_large_is_refused_before_it_is_read(size: int, verb: bytes) -> None:
    with connected(raw(verb + str(size).encode() + b"\r\n" + bytes(1000))) as (_, connection):

        def ask() -> None:
            with pytest.raises(
                OSError, match=f"a message of b'{size}' bytes; expected at most {MESSAGE_BYTES_MAX}"
            ):
                connection.ask("any", within_s=PATIENCE_S)

        bounded_by(1_000_000, ask)


def test_message_that_claims_much_and_brings_little_takes_little() -> None:
    with connected(raw(b"MSG REPLY 1 %d\r\n" % MESSAGE_BYTES_MAX + bytes(1000))) as (_, connection):

        def ask() -> None:
            with pytest.raises(TimeoutError):
                connection.ask("any", within_s=LITTLE_S)

        bounded_by(1_000_000, ask)


def endless(talk: Talk, _asked: Asked) -> None:
    while True:
        talk.send(b"x" * 65_536)


def test_line_without_an_end_is_read_only_so_far() -> None:
    with connected(endless) as (_, connection):

        def ask() -> None:
            with pytest.raises(OSError, match=f"a line of more than {LINE_BYTES_MAX} bytes; expected one of the"):
                connection.ask("any", within_s=PATIENCE_S)

        bounded_by(8 * LINE_BYTES_MAX, ask)


def test_greeting_without_an_end_is_a_refusal() -> None:
    endless_info = b"INFO " + b"x" * (LINE_BYTES_MAX + 70_000)
    with server(greeting=endless_info) as served, pytest.raises(Refused, match="a line of more than"):
        Connection(str(served.address), PATIENCE_S)


def test_long_line_and_a_greeting_as_long_as_servers_have_are_read() -> None:
    info = json.dumps({"server_id": ID, "connect_urls": ["127.0.0.1:4222"] * 10_000}).encode()
    with (
        server(answers(b"x"), greeting=b"INFO " + info + b"\r\n" + INFO) as served,
        closing(Connection(str(served.address), PATIENCE_S)) as connection,
    ):
        assert (ID, b"x") == (connection.server, connection.ask("any", within_s=PATIENCE_S))


def test_connection_can_be_closed_twice() -> None:
    with connected() as (_, connection):
        connection.close()
        connection.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            connection.publish("any")
