"""What a client knows after each answer of a server: it is acknowledged, certainly refused, or unknown."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from harness.clients.plain_nodes import PlainNodes
from harness.clients.plain_work import produced
from harness.model import OpType
from harness.target.log_client import Closes, Deletes, Found, Leads, Refused, Serves
from harness.workload.plan import Place
from targets.nats.clients.client import NatsClient, ServerError
from targets.nats.target import TARGET
from tests.targets.nats.server import (
    ID,
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

AT = Place("log", 2)
STREAM = "log-2"
PATIENCE_S = 20.0
LITTLE_S = 0.05
NO_MESSAGE = {"code": 404, "err_code": 10037, "description": "no message found"}
NO_STREAM = {"code": 404, "err_code": 10059, "description": "stream not found"}
NO_QUORUM = {"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}


@contextmanager
def client_of(serve: Serve, patience_s: float = PATIENCE_S) -> Iterator[NatsClient]:
    """Yield a client of a server that does this; whatever the test does, both are closed."""
    with opened(serve, patience_s) as (_, client):
        yield client


@contextmanager
def opened(serve: Serve, patience_s: float = PATIENCE_S) -> Iterator[tuple[Served, NatsClient]]:
    with server(serve) as served:
        client = NatsClient(str(served.address), AT, patience_s)
        try:
            yield served, client
        finally:
            client.close()


# --- produce ---------------------------------------------------------------------------------------------------
def test_value_is_published_once_to_its_stream_and_its_sequence_comes_back() -> None:
    asked: list[Asked] = []

    def serve(talk: Talk, one: Asked) -> None:
        asked.append(one)
        talk.tell(one, {"stream": STREAM, "seq": 40 + len(asked)})

    with opened(serve) as (served, client):
        assert [41, 42] == [client.produce(b"m1.0"), client.produce("ü".encode())]
    assert [(STREAM, b"m1.0"), (STREAM, "ü".encode())] == [(one.subject, one.payload) for one in asked]
    assert 1 == len(served.talks)


@pytest.mark.parametrize("error", [NO_QUORUM, NO_STREAM, {"err_code": 1}, {}])
def test_error_in_place_of_an_acknowledgement_leaves_it_unknown(error: dict[str, Any]) -> None:
    with (
        client_of(answers({"error": error, "stream": STREAM, "seq": 0})) as client,
        pytest.raises(ServerError, match=f"^error {error.get('err_code')}: {error.get('description')}$") as raised,
    ):
        client.produce(b"m")
    assert not isinstance(raised.value, Refused)


# --- delete ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("before", "upto"), [(7, {"seq": 7}), (0, {"seq": 1}), (-1, {})])
def test_stream_is_purged_up_to_a_sequence_and_its_first_one_comes_back(before: int, upto: object) -> None:
    asked: list[tuple[str, object]] = []

    def serve(talk: Talk, one: Asked) -> None:
        asked.append((one.subject, one.body))
        talk.tell(one, {"success": True} if "PURGE" in one.subject else {"state": {"first_seq": 9, "last_seq": 8}})

    with client_of(serve) as client:
        assert 9 == client.delete_before(before)
    assert (f"$JS.API.STREAM.PURGE.{STREAM}", upto) == asked[0]


@pytest.mark.parametrize("said", [{"error": NO_QUORUM}, {"success": False}, {}])
def test_purge_without_success_is_unknown(said: dict[str, Any]) -> None:
    with client_of(answers(said)) as client, pytest.raises(ServerError) as raised:
        client.delete_before(3)
    assert not isinstance(raised.value, Refused)


def test_text_of_an_error_is_shown_in_part() -> None:
    said = {"error": {"err_code": 1, "description": "x" * 10_000}}
    with client_of(answers(said)) as client, pytest.raises(ServerError) as raised:
        client.produce(b"m")
    assert f"error 1: {'x' * 200}" == str(raised.value)


def test_stream_that_the_server_knows_nobody_for_is_a_refusal() -> None:
    with client_of(knows_nobody) as client, pytest.raises(Refused, match=f"^{STREAM}: no responders$"):
        client.produce(b"m")


@pytest.mark.parametrize(
    ("serve", "patience_s", "error"),
    [(is_silent, LITTLE_S, TimeoutError), (hangs_up, PATIENCE_S, ConnectionError)],
)
def test_server_that_says_nothing_leaves_it_unknown(
    serve: Serve, patience_s: float, error: type[Exception]
) -> None:
    with client_of(serve, patience_s) as client, pytest.raises(error):
        client.produce(b"m")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"null",
        b"[" * 100_000,
        {},
        {"seq": None},
        {"seq": "7"},
        {"seq": 7.5},
        {"seq": -1},
        {"error": NO_MESSAGE},
        {"error": NO_QUORUM},
    ],
)
def test_answer_that_acknowledges_nothing_leaves_it_unknown(said: object) -> None:
    with client_of(answers(said)) as client:
        nodes = PlainNodes(lambda *_: client, lambda: [client.address])
        outcome = produced(nodes, AT, ["m"], PATIENCE_S)
    assert (OpType.INFO, None) == (outcome.type, outcome.base)
    assert len(outcome.error) < 700


def test_connection_after_anything_but_an_answer_is_a_new_one() -> None:
    """The answer that did not come in time must not be taken for that of the next request."""
    asked: list[Asked] = []

    def serve(talk: Talk, one: Asked) -> None:
        asked.append(one)
        if len(asked) > 1:
            talk.tell(one, {"seq": 7})

    with opened(serve, LITTLE_S) as (served, client):
        with pytest.raises(TimeoutError):
            client.produce(b"m")
        client.patience_s = PATIENCE_S
        assert 7 == client.produce(b"m")
        assert 2 == len(served.talks)


def test_connection_that_is_refused_is_a_refusal() -> None:
    with nobody() as address:
        client = NatsClient(str(address), AT, PATIENCE_S)
        for ask in (lambda: client.produce(b"m"), lambda: client.read(0)):
            with pytest.raises(Refused, match=f"^{address}: .*refused; expected a connection$"):
                ask()
        assert not TARGET.clients.serves(str(address))
        assert not TARGET.clients.leads(str(address), "log", 2)


# --- read ------------------------------------------------------------------------------------------------------
class Stream:
    """
    A stream from one sequence to another, some of whose messages are not there.

    Args:
        order: in which the answers to questions that came together are sent.
    """

    def __init__(
        self, first: int, last: int, holes: Sequence[int] = (), order: Callable[[list[int]], list[int]] = list
    ) -> None:
        self.first, self.last, self.holes = first, last, holes
        self.asked: list[int] = []
        self.awaited = 1
        self._order = order
        self._waiting: dict[int, Asked] = {}

    def __call__(self, talk: Talk, asked: Asked) -> None:
        if asked.subject == f"$JS.API.STREAM.INFO.{STREAM}":
            talk.tell(asked, {"state": {"first_seq": self.first, "last_seq": self.last}})
            return
        assert f"$JS.API.STREAM.MSG.GET.{STREAM}" == asked.subject
        number = asked.body["seq"]
        self.asked.append(number)
        self._waiting[number] = asked
        # It answers nothing before all that it awaits has come.
        if len(self._waiting) == self.awaited:
            for each in self._order([*self._waiting]):
                talk.tell(self._waiting.pop(each), self.answer(each))

    def answer(self, number: int) -> dict[str, Any]:
        if number in self.holes:
            return {"error": NO_MESSAGE}
        data = base64.b64encode(f"m{number}".encode()).decode()
        return {"message": {"subject": STREAM, "seq": number, "data": data}}


def messages(*numbers: int) -> list[Found]:
    return [Found(number, f"m{number}".encode()) for number in numbers]


def test_read_asks_for_all_at_once_and_is_in_order_whatever_comes_first() -> None:
    stream = Stream(1, 6, order=lambda numbers: sorted(numbers, key=lambda number: (number % 3, -number)))
    stream.awaited = 4
    with client_of(stream) as client:
        assert messages(3, 4, 5, 6) == client.read(3)
    assert [3, 4, 5, 6] == stream.asked


def test_sequences_without_a_message_are_passed_over() -> None:
    with client_of(Stream(1, 6, holes=(1, 4, 6))) as client:
        assert messages(2, 3, 5) == client.read(1)
        assert [] == client.read(6)
    with client_of(Stream(1, 3, holes=(1, 2, 3))) as client:
        assert [] == client.read(0)


@pytest.mark.parametrize(
    ("first", "last", "start", "found"),
    [
        (1, 3, 0, [1, 2, 3]),
        (1, 3, 1, [1, 2, 3]),
        (1, 3, 3, [3]),
        (1, 3, 4, []),
        (5, 7, 0, [5, 6, 7]),
        (5, 7, 6, [6, 7]),
        (0, 0, 0, []),
        (1, 0, 0, []),
        (4, 3, 0, []),
    ],
)
def test_read_begins_where_it_is_asked_to_or_where_the_stream_does(
    first: int, last: int, start: int, found: list[int]
) -> None:
    stream = Stream(first, last)
    with client_of(stream) as client:
        assert messages(*found) == client.read(start)
    assert found == stream.asked


def test_long_stream_is_read_in_parts_that_follow_each_other() -> None:
    stream = Stream(1, 600)
    with client_of(stream) as client:
        found: list[Found] = []
        while came := client.read(found[-1].offset + 1 if found else 0):
            assert len(came) <= 256
            found += came
    assert messages(*range(1, 601)) == found


def test_message_without_data_is_an_empty_value() -> None:
    stream = Stream(1, 1)
    stream.answer = lambda number: {"message": {"seq": number}}  # type: ignore[method-assign]
    with client_of(stream) as client:
        assert [(1, b"")] == client.read(0)


@pytest.mark.parametrize("where", ["INFO", "GET"])
@pytest.mark.parametrize(
    ("serve", "error", "says"),
    [
        (answers({"error": NO_QUORUM}), ServerError, "error 10008: JetStream system temporarily unavailable"),
        (answers(b"no JSON"), ServerError, "expected JSON"),
        (answers(b"[]"), ServerError, "expected an object"),
        (knows_nobody, Refused, "no responders"),
        (hangs_up, ConnectionError, "hung up|reset by peer|Broken pipe"),
    ],
)
def test_read_that_fails_brings_nothing_and_the_next_one_reads(
    where: str, serve: Serve, error: type[Exception], says: str
) -> None:
    stream, failed = Stream(1, 3), list[str]()

    def answered(talk: Talk, asked: Asked) -> None:
        if where in asked.subject and not failed:
            failed.append(asked.subject)
            serve(talk, asked)
        else:
            stream(talk, asked)

    with client_of(answered) as client:
        with pytest.raises(error, match=says):
            client.read(0)
        assert messages(1, 2, 3) == client.read(0)


def test_read_of_which_one_answer_lacks_brings_nothing() -> None:
    stream = Stream(1, 3)
    stream.awaited = 4
    with client_of(stream, LITTLE_S) as client, pytest.raises(TimeoutError):
        client.read(0)
    assert [1, 2, 3] == stream.asked


# --- what a server says of itself ------------------------------------------------------------------------------
def test_calls_are_those_that_plain_clients_look_for() -> None:
    client = NatsClient("127.0.0.1:1", AT, 1.0)
    for protocol in (Closes, Deletes, Leads, Serves):
        assert isinstance(client, protocol)
    client.close()
    client.close()
    assert (True, "acks=1") == (TARGET.clients.creates, TARGET.clients.unsendable(1, "none"))


def told(total: object) -> dict[str, Any]:
    """Return an answer to SUBSZ."""
    return {"server": {"name": "A", "id": ID}, "data": {"num_subscriptions": 7, "total": total}}


@pytest.mark.parametrize(
    ("said", "leads"),
    [
        (told(1), True),
        (told(2), True),
        (told(0), False),
        (told(None), False),
        ({"server": {"name": "A"}, "data": {"num_subscriptions": 7}}, False),
        ({"server": {"name": "A"}, "data": {}}, False),
        ({"server": {"name": "A"}, "data": [1]}, False),
        ({"server": {"name": "A"}}, False),
        ({"server": {"name": "A"}, "error": {"code": 503, "description": "no JetStream"}}, False),
        (b"no JSON", False),
        (b"[]", False),
    ],
)
def test_server_leads_only_if_it_takes_the_stream_s_messages_itself(said: object, leads: bool) -> None:
    asked: list[Asked] = []

    def serve(talk: Talk, one: Asked) -> None:
        asked.append(one)
        talk.tell(one, said)

    with opened(serve) as (served, client):
        assert leads is TARGET.clients.leads(client.address, "log", 2)
        assert "sys" == served.talks[0].hello["user"]
    assert [f"$SYS.REQ.SERVER.{ID}.SUBSZ"] == [one.subject for one in asked]
    assert {"account": "$G", "test": STREAM, "subscriptions": True} == asked[0].body


@pytest.mark.parametrize("serve", [knows_nobody, hangs_up])
def test_server_that_says_nothing_of_itself_does_not_lead(serve: Serve) -> None:
    with client_of(serve) as client:
        assert not TARGET.clients.leads(client.address, "log", 2)


def test_server_that_is_silent_does_not_lead() -> None:
    with client_of(is_silent, LITTLE_S) as client:
        assert not client.leads()


def test_server_serves_once_it_greets_its_clients() -> None:
    with client_of(is_silent) as client:
        assert TARGET.clients.serves(client.address)
        assert client.serves()
    with server(greeting=b"HTTP/1.1 400 Bad Request\r\n") as served:
        assert not TARGET.clients.serves(str(served.address))
        with pytest.raises(Refused, match=re.escape("b'HTTP/1.1'; expected INFO; expected a NATS server")):
            NatsClient(str(served.address), AT, PATIENCE_S).serves()
