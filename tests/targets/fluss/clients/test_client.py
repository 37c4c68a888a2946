"""What a client knows after each answer of a server: it is acknowledged, certainly refused, or unknown."""

from __future__ import annotations

import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.clients.plain_nodes import PlainNodes
from harness.clients.plain_work import produced
from harness.launch import Address
from harness.model import OpType
from harness.target.log_client import Batches, Closes, Leads, Refused, Serves
from harness.workload.plan import Place
from targets.fluss import coordinator
from targets.fluss.clients import batch
from targets.fluss.clients.client import Error, FlussClient
from targets.fluss.clients.connection import ANSWER_BYTES_MAX, ServerError
from targets.fluss.tables import number_of
from targets.fluss.target import TARGET
from targets.fluss.wire.frames import REQUEST, Api, Type
from targets.fluss.wire.protobuf import Fields, data_of, fields, message, messages, number
from tests.targets.fluss.logs import build
from tests.targets.fluss.wire.wire import answer, error
from tests.workloads.peers import peer

AT = Place("log", 2)
PATIENCE_S = 20.0
LITTLE_S = 0.05
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 30
TIME_OUT = 25

# What a server does with (api key, message, number of the request): raw bytes to send, None to hang up.
Serve = Callable[[int, Fields, int], bytes | None]


def appended(at: int = 0, code: int = 0) -> bytes:
    """Return the message of an answer to a ProduceLog of one bucket."""
    said = [(3, code), (4, b"why")] if code else [(5, at)]
    return message([(1, message([(2, AT.partition), *said]))])


def fetched(records: bytes = b"", code: int = 0) -> bytes:
    """Return the message of an answer to a FetchLog of one bucket."""
    said = [(3, code), (4, b"why")] if code else [(5, 9), (6, 0), (8, records)]
    return message([(1, message([(1, number_of("log")), (2, message([(2, AT.partition), *said]))]))])


@contextmanager
def client_of(serve: Serve, patience_s: float = PATIENCE_S) -> Iterator[FlussClient]:
    """Yield a client of a server that does this; whatever the test does, both are closed."""

    def answered(frame: bytes) -> bytes | None:
        key, version, asked = REQUEST.unpack_from(frame)
        assert 0 == version
        return serve(key, fields(frame[REQUEST.size :]), asked)

    with peer(answered) as address:
        client = FlussClient(address, AT, patience_s)
        try:
            yield client
        finally:
            client.close()


def always(body: bytes, kind: int = Type.SUCCESS) -> Serve:
    return lambda _key, _asked, number: answer(number, body, kind)


def refuses(code: int) -> Serve:
    return lambda _key, _asked, number: error(number, code, "why")


def hangs_up(_key: int, _asked: Fields, _number: int) -> None:
    return None


def is_silent(_key: int, _asked: Fields, _number: int) -> bytes:
    return b""


# --- produce ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("acks", "values"), [(-1, [b"m1.0"]), (1, [b"m1.0", b"m1.1", "ü".encode()])])
def test_batch_is_sent_once_for_its_bucket_and_the_offset_of_its_first_record_comes_back(
    acks: int, values: list[bytes]
) -> None:
    asked: list[tuple[int, Fields]] = []

    def serve(key: int, found: Fields, number: int) -> bytes:
        asked.append((key, found))
        return answer(number, appended(41))

    with client_of(serve) as client:
        assert 41 == client.produce_batch(values, acks)
    ((key, found),) = asked
    assert (Api.ProduceLog, acks, number_of("log")) == (key, number(found, 1), number(found, 2))
    # The server's own time-out comes before the client's patience ends.
    assert 0 < number(found, 3) < 1000 * PATIENCE_S
    (bucket,) = messages(found, 4)
    assert 2 == number(bucket, 2)
    assert [value.decode() for value in values] == [value for _, value in batch.read(data_of(bucket, 3))]


def test_value_alone_waits_for_all_that_must_have_it() -> None:
    asked: list[int] = []

    def serve(_key: int, found: Fields, at: int) -> bytes:
        asked.append(number(found, 1))
        return answer(at, appended(0))

    with client_of(serve) as client:
        assert 0 == client.produce(b"m")
    assert [-1] == asked


def test_one_connection_asks_again_and_again_with_new_numbers() -> None:
    numbers: list[int] = []

    def serve(_key: int, _asked: Fields, at: int) -> bytes:
        numbers.append(at)
        return answer(at, appended(at))

    with client_of(serve) as client:
        assert [1, 2, 3] == [client.produce(b"m") for _ in range(3)]
    assert [1, 2, 3] == numbers


@pytest.mark.parametrize("code", Error)
@pytest.mark.parametrize("whole", [False, True])
def test_error_before_the_append_is_a_refusal(code: Error, whole: bool) -> None:
    serve = refuses(code) if whole else always(appended(code=code))
    with client_of(serve) as client, pytest.raises(Refused, match=f"^error {int(code)}: why$"):
        client.produce(b"m")


@pytest.mark.parametrize("code", [NOT_ENOUGH_REPLICAS_AFTER_APPEND, TIME_OUT, -1, 1, 999, 2**31 - 1])
@pytest.mark.parametrize("whole", [False, True])
def test_any_other_error_leaves_it_unknown(code: int, whole: bool) -> None:
    serve = refuses(code) if whole else always(appended(code=code))
    with client_of(serve) as client, pytest.raises(ServerError, match=f"^error {code}: why$") as raised:
        client.produce(b"m")
    assert code == raised.value.code
    assert not isinstance(raised.value, Refused)


def test_text_of_an_error_is_shown_in_part() -> None:
    long = error(1, 1, "x" * 10_000)
    with client_of(lambda *_: long) as client, pytest.raises(ServerError) as raised:
        client.produce(b"m")
    assert f"error 1: {'x' * 200}" == str(raised.value)


def test_server_that_hangs_up_or_is_silent_leaves_it_unknown() -> None:
    with client_of(hangs_up) as client, pytest.raises(ConnectionError, match="hung up after 0 of 4 bytes"):
        client.produce(b"m")
    with client_of(is_silent, LITTLE_S) as client, pytest.raises(TimeoutError):
        client.produce(b"m")


def test_answer_that_stops_halfway_leaves_it_unknown() -> None:
    whole = answer(1, appended(3))
    with client_of(lambda *_: whole[:-1], LITTLE_S) as client, pytest.raises(TimeoutError):
        client.produce(b"m")


@pytest.mark.parametrize("length", [ANSWER_BYTES_MAX + 1, 2**31 - 1, -1, -(2**31)])
def test_answer_of_a_length_that_none_has_is_an_error_and_nothing_is_allocated(length: int) -> None:
    said = length.to_bytes(4, signed=True) + bytes(1000)
    with client_of(lambda *_: said) as client:
        tracemalloc.start()
        try:
            with pytest.raises(OSError, match=f"answer of {length} bytes; expected at most"):
                client.produce(b"m")
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 4_000_000


def test_answer_that_claims_much_and_brings_little_takes_little() -> None:
    said = ANSWER_BYTES_MAX.to_bytes(4) + bytes(1000)
    with client_of(lambda *_: said, LITTLE_S) as client, pytest.raises(TimeoutError):
        client.produce(b"m")


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"\x0a\x7f", message([(1, 5)]), appended(1) + appended(2), message([(1, b"\x28")])]
)
def test_answer_that_is_none_leaves_it_unknown(body: bytes) -> None:
    with client_of(always(body)) as client:
        nodes = PlainNodes(lambda *_: client, lambda: [client.address])
        assert OpType.INFO is produced(nodes, AT, ["m"], PATIENCE_S).type


def test_answer_without_an_offset_acknowledges_nothing() -> None:
    with client_of(always(message([(1, message([(2, AT.partition)]))]))) as client:
        nodes = PlainNodes(lambda *_: client, lambda: [client.address])
        outcome = produced(nodes, AT, ["m"], PATIENCE_S)
    assert (OpType.INFO, None) == (outcome.type, outcome.base)


def test_connection_after_anything_but_an_answer_is_a_new_one() -> None:
    """The answer that did not come in time must not be taken for that of the next request."""
    late = iter([b"", answer(1, appended(7))])
    with client_of(lambda *_: next(late), LITTLE_S) as client:
        with pytest.raises(TimeoutError):
            client.produce(b"m")
        client.patience_s = PATIENCE_S
        # The server goes on with its next connection once this one has ended.
        assert 7 == client.produce(b"m")


def test_connection_that_is_refused_is_a_refusal() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # without listening: every connection is refused
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        client = FlussClient(address, AT, PATIENCE_S)
        for ask in (lambda: client.produce(b"m"), lambda: client.read(0)):
            with pytest.raises(Refused, match=f"^{address}: .*refused; expected a connection$"):
                ask()
        assert not TARGET.clients.serves(address)
        assert not TARGET.clients.leads(address, "log", 2)


# --- read ------------------------------------------------------------------------------------------------------
def test_read_asks_for_its_bucket_as_a_client_and_leaves_out_what_is_before_its_offset() -> None:
    asked: list[tuple[int, Fields]] = []

    def serve(key: int, found: Fields, at: int) -> bytes:
        asked.append((key, found))
        return answer(at, fetched(build.batch(5, "a", "b", "c")))

    with client_of(serve) as client:
        assert [(6, b"b"), (7, b"c")] == [tuple(each) for each in client.read(6)]
    ((key, found),) = asked
    assert (Api.FetchLog, -1) == (key, number(found, 1))
    (table,) = messages(found, 3)
    (bucket,) = messages(table, 4)
    assert (number_of("log"), 2, 6) == (number(table, 1), number(bucket, 2), number(bucket, 3))


def test_read_of_nothing_brings_nothing_and_that_of_a_follower_is_refused() -> None:
    with client_of(always(fetched())) as client:
        assert [] == client.read(0)
    serve = always(fetched(code=Error.NOT_LEADER_OR_FOLLOWER))
    with client_of(serve) as client, pytest.raises(Refused, match="error 12: why"):
        client.read(0)


# --- what a server says of itself ------------------------------------------------------------------------------
def test_calls_are_those_that_plain_clients_look_for() -> None:
    client = FlussClient("127.0.0.1:1", AT, 1.0)
    for protocol in (Batches, Closes, Leads, Serves):
        assert isinstance(client, protocol)
    client.close()
    client.close()
    assert (TARGET.clients.creates, TARGET.clients.unsendable(1, "none")) == (True, "")


@pytest.mark.parametrize(
    ("serve", "serves", "leads"),
    [
        (always(fetched()), True, True),
        (always(fetched(code=Error.NOT_LEADER_OR_FOLLOWER)), True, False),
        (always(fetched(code=999)), True, False),
        (refuses(999), False, False),
        (refuses(Error.LEADER_NOT_AVAILABLE), False, False),
        (hangs_up, False, False),
    ],
)
def test_server_serves_and_leads_as_it_says_itself(serve: Serve, serves: bool, leads: bool) -> None:
    with client_of(serve) as client:
        assert serves is TARGET.clients.serves(client.address)
        assert leads is TARGET.clients.leads(client.address, "log", 2)


@pytest.mark.parametrize(
    ("serve", "mode"), [(always(b""), "active"), (refuses(1), ""), (refuses(12), ""), (hangs_up, "")]
)
def test_coordinator_is_active_if_it_answers(monkeypatch: pytest.MonkeyPatch, serve: Serve, mode: str) -> None:
    monkeypatch.setattr(coordinator, "_ASKED_S", PATIENCE_S)
    asked: list[int] = []

    def heard(key: int, found: Fields, at: int) -> Any:
        asked.append(key)
        return serve(key, found, at)

    with client_of(heard) as client:
        host, _, port = client.address.rpartition(":")
        assert mode == coordinator.mode_of(Address(host=host, port=int(port)))
    assert [Api.ApiVersions] == asked
