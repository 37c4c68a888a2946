"""nats-py beside the plain client: what it publishes again, what is known of it then, and from where it reads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.cleanup.process import until
from harness.clients.library import Came, Record
from harness.clients.outcome import Outcome
from harness.model import OpType
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from harness.workload.script import Send
from targets.nats.clients import library
from targets.nats.clients.client import NatsClient
from targets.nats.clients.connection import SYSTEM, Connection
from targets.nats.clients.library import NatsPy, Reader, Sender
from targets.nats.streams import stream_of
from targets.nats.target import TARGET
from targets.nats.versions import RELEASES, program_of
from targets.nats.versions import library as programs
from tests.needs import needs
from tests.targets.nats.server import (
    Asked,
    Serve,
    Talk,
    answers,
    is_silent,
    knows_nobody,
    nobody,
    server,
)

AT, OTHER = Place("log", 0), Place("log", 1)
WAIT_S = 20.0
NO_QUORUM = {"error": {"code": 503, "err_code": 10008, "description": "no quorum"}}


def producer(**more: Any) -> ProducerPlan:
    return ProducerPlan(name="p", places=(AT, OTHER), **{"within_ms": 10_000, **more})


def consumer(**more: Any) -> ConsumerPlan:
    return ConsumerPlan(name="c", places=(AT, OTHER), **more)


def sent(sender: Sender, *values: str, place: Place = AT) -> dict[str, Outcome]:
    """Return the outcome of each value; all are sent together."""
    found: dict[str, Outcome] = {}
    records = [Record(place=place, value=value, time_ms=0) for value in values]
    sender.send(records, Send(parts=(), acks=-1, codec="none"), found.__setitem__)
    return found


# --- which clients stand on it ---------------------------------------------------------------------------------
@needs("nats-py")
def test_producer_that_sends_again_stands_on_it_and_no_other_one() -> None:
    found = NatsPy()
    for plan, stands in (
        (producer(), False),
        (producer(retries=1), True),
        (producer(idempotent=True), True),
        (producer(idempotent=True, retries=5), True),
    ):
        assert stands is found.sends(plan, Clients(producers=(plan,)))


@needs("nats-py")
def test_consumer_that_only_goes_on_stands_on_it_beside_such_a_producer() -> None:
    found, again = NatsPy(), producer(retries=1)
    for plan, producers, stands in (
        (consumer(), (again,), True),
        (consumer(), (producer(), again), True),
        (consumer(), (producer(),), False),
        (consumer(), (), False),
        (consumer(via=Via.EVERY), (again,), False),
        (consumer(seek=0.5), (again,), False),
    ):
        assert stands is found.reads(plan, Clients(producers=producers, consumers=(plan,)))


def test_without_the_library_no_client_stands_on_it_and_it_says_what_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "lacks", lambda extra: f"no {extra}")
    found, again = NatsPy(), producer(retries=1)
    assert "no nats" == found.why_not()
    assert not found.sends(again, Clients(producers=(again,)))
    assert not found.reads(consumer(), Clients(producers=(again,)))


@needs("nats-py")
def test_outcomes_of_its_producers_have_offsets() -> None:
    assert () == TARGET.clients.untold(Clients(producers=(producer(idempotent=True),)))


# --- what it publishes -----------------------------------------------------------------------------------------
class Leader:
    """A leader that does what it is told, turn by turn, with what is published, and the last for ever."""

    def __init__(self, *turns: Serve) -> None:
        self._turns = [*turns]
        self.asked: list[Asked] = []

    def __call__(self, talk: Talk, asked: Asked) -> None:
        self.asked.append(asked)
        serve = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        serve(talk, asked)


@contextmanager
def sender_of(leader: Serve, **plan: Any) -> Iterator[Sender]:
    with server(leader) as served, closing(Sender(producer(**plan), [str(served.address)])) as sender:
        yield sender


@needs("nats-py")
@pytest.mark.parametrize(
    "first", [is_silent, knows_nobody, answers(NO_QUORUM)], ids=["silent", "nobody", "no quorum"]
)
def test_record_that_is_not_acknowledged_is_published_again_with_its_id(first: Serve) -> None:
    leader = Leader(first, answers({"stream": "log-0", "seq": 7}))
    with sender_of(leader, idempotent=True, within_ms=1000) as sender:
        assert {"p.0": Outcome(type=OpType.OK, base=7)} == sent(sender, "p.0")
    assert [("log-0", b"p.0")] * 2 == [(asked.subject, asked.payload) for asked in leader.asked]
    assert all(b"Nats-Msg-Id: p.0\r\n" in asked.headers for asked in leader.asked)


@needs("nats-py")
def test_record_of_a_producer_with_retries_alone_has_no_id() -> None:
    leader = Leader(answers({"stream": "log-0", "seq": 7}))
    with sender_of(leader, retries=3) as sender:
        assert 7 == sent(sender, "p.0")["p.0"].base
    assert [b""] == [asked.headers for asked in leader.asked]


@needs("nats-py")
@pytest.mark.parametrize(
    ("turns", "type_", "error"),
    [
        ((knows_nobody,), OpType.FAIL, "no responders"),
        ((is_silent,), OpType.INFO, "TimeoutError: nats: timeout"),
        ((answers(NO_QUORUM),), OpType.INFO, "no quorum"),
        ((answers(b"no JSON"),), OpType.INFO, "JSONDecodeError"),
        # What was sent once may be there, whoever is not there later.
        ((answers(NO_QUORUM), knows_nobody), OpType.INFO, "no quorum"),
        ((knows_nobody, answers(NO_QUORUM)), OpType.INFO, "no quorum"),
    ],
)
def test_record_that_nobody_was_sent_has_failed_and_any_other_is_unknown(
    monkeypatch: pytest.MonkeyPatch, turns: Sequence[Serve], type_: OpType, error: str
) -> None:
    monkeypatch.setattr(library, "_AGAIN_S", 0.01)
    leader = Leader(*turns)
    with sender_of(leader, retries=2, within_ms=500) as sender:
        outcome = sent(sender, "p.0")["p.0"]
    assert (type_, None) == (outcome.type, outcome.base)
    assert error in outcome.error
    assert 1 < len(leader.asked) <= 3


@needs("nats-py")
def test_server_that_is_not_there_was_sent_nothing_and_showed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_CONNECT_S_MAX", 0.2)
    with nobody() as address:
        with closing(Sender(producer(retries=2), [str(address)])) as sender:
            assert {OpType.FAIL} == {outcome.type for outcome in sent(sender, "p.0", "p.1").values()}
        with closing(Reader(consumer(), [str(address)])) as reader:
            reader.assign({AT: 0, OTHER: 3})
            came = reader.poll()
    assert ({}, {AT, OTHER}) == (came.records, {*came.refused})


# --- with the real server --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server alone, and yield its address."""
    folder = tmp_path_factory.mktemp("nats")
    file = folder / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:-1"\nports_file_dir: "{folder}"\n'
        f"accounts {{ $SYS {{ users: [ {{ user: {SYSTEM}, password: {SYSTEM} }} ] }} }}\n"
        f'jetstream {{ store_dir: "{folder}/data", max_file_store: 64M }}\n'
    )
    program = program_of(RELEASES["2.15.3"], programs())
    with (folder / "log").open("w") as log, subprocess.Popen([program, "-c", file], stderr=log) as process:
        try:
            yield _address(folder)
        finally:
            process.kill()


def _address(folder: Path) -> str:
    found: list[str] = []

    def written() -> bool:
        for path in folder.glob("*.ports"):
            if text := path.read_text():
                found.append(json.loads(text)["nats"][0].removeprefix("nats://"))
        return bool(found)

    assert until(written, WAIT_S), (folder / "log").read_text()
    return found[0]


@pytest.fixture
def streams(real: str) -> str:
    """Make the streams anew, and return the server's address."""
    for place in (AT, OTHER):
        name = stream_of(*place)
        asked(real, f"STREAM.DELETE.{name}")
        made = asked(real, f"STREAM.CREATE.{name}", {"name": name, "subjects": [name], "storage": "memory"})
        assert "error" not in made
    return real


def asked(address: str, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    with closing(Connection(address, WAIT_S)) as connection:
        found: dict[str, Any] = json.loads(connection.ask(f"$JS.API.{subject}", body or {}, within_s=WAIT_S))
    return found


def subscriptions(address: str) -> int:
    """Return how many subscriptions the connection of nats-py has, as the server knows."""
    with closing(Connection(address, WAIT_S, user=SYSTEM)) as connection:
        said = connection.ask(f"$SYS.REQ.SERVER.{connection.server}.CONNZ", within_s=WAIT_S)
    (found,) = [each for each in json.loads(said)["data"]["connections"] if each["lang"] == "python3"]
    return int(found["subscriptions"])


def stored(address: str, place: Place = AT) -> list[tuple[int, str]]:
    with closing(NatsClient(address, place, WAIT_S)) as client:
        return [(offset, value.decode()) for offset, value in client.read(0)]


def on_the_real_server(test: Any) -> Any:
    return pytest.mark.slow(needs("nats-2.15.3", "nats-py")(test))


@on_the_real_server
def test_plain_client_and_server_agree(streams: str) -> None:
    """The same calls as of the scripted servers of other tests."""
    with closing(NatsClient(streams, AT, WAIT_S)) as client:
        assert client.serves()
        assert [1, 2, 3] == [client.produce(f"m{number}".encode()) for number in range(3)]
        assert [(2, b"m1"), (3, b"m2")] == [tuple(each) for each in client.read(2)]
        asked(streams, "STREAM.MSG.DELETE.log-0", {"seq": 2})
        assert [(1, b"m0"), (3, b"m2")] == [tuple(each) for each in client.read(0)]
        assert [] == client.read(4)
        assert client.leads()
    # Nobody takes messages of a stream that is not there.
    assert not NatsClient(streams, Place("log", 9), WAIT_S).leads()


@on_the_real_server
@pytest.mark.parametrize(("plan", "count"), [({"idempotent": True}, 1), ({"retries": 1}, 2)])
def test_same_id_that_is_published_twice_is_stored_once(streams: str, plan: dict[str, Any], count: int) -> None:
    with closing(Sender(producer(**plan), [streams])) as sender:
        bases = [sent(sender, "p.0")["p.0"].base for _ in range(2)]
    assert [(number + 1, "p.0") for number in range(count)] == stored(streams)
    assert {number + 1 for number in range(count)} == {*bases}


@on_the_real_server
def test_sequences_of_records_that_are_sent_together_come_back_as_offsets(streams: str) -> None:
    values = [f"p.{number}" for number in range(9)]
    with closing(Sender(producer(idempotent=True), [streams])) as sender:
        outcomes = sent(sender, *values)
    assert {OpType.OK} == {outcome.type for outcome in outcomes.values()}
    assert stored(streams) == sorted((outcome.base or 0, value) for value, outcome in outcomes.items())


@on_the_real_server
def test_stream_that_is_not_there_fails_for_certain(streams: str) -> None:
    with closing(Sender(producer(retries=1), [streams])) as sender:
        outcome = sent(sender, "p.0", place=Place("log", 9))["p.0"]
    assert (OpType.FAIL, "no responders") == (outcome.type, outcome.error)


def polled(reader: Reader, count: int) -> dict[Place, list[tuple[int, str]]]:
    """Return what polls bring until they brought so many records."""
    found = Came()

    def enough() -> bool:
        for place, records in reader.poll().records.items():
            found.records.setdefault(place, []).extend(records)
        return sum(map(len, found.records.values())) >= count

    assert until(enough, WAIT_S)
    return found.records


@on_the_real_server
def test_reader_reads_from_a_position_and_goes_on_from_there(streams: str) -> None:
    with closing(NatsClient(streams, AT, WAIT_S)) as client, closing(Reader(consumer(), [streams])) as reader:
        for number in range(4):
            client.produce(f"m{number}".encode())
        reader.assign({AT: 3})
        assert {AT: [(3, "m2"), (4, "m3")]} == polled(reader, 2)
        assert Came() == reader.poll()
        client.produce(b"m4")
        assert {AT: [(5, "m4")]} == polled(reader, 1)
        # Position 0 is the beginning.
        reader.assign({AT: 0})
        assert {AT: [(number + 1, f"m{number}") for number in range(5)]} == polled(reader, 5)
        assert None is reader.high_watermark(AT)


@on_the_real_server
def test_reader_of_two_streams_has_the_records_of_each(streams: str) -> None:
    with closing(Reader(consumer(wait_ms=1), [streams])) as reader:
        for place in (AT, OTHER):
            with closing(NatsClient(streams, place, WAIT_S)) as client:
                client.produce(str(place).encode())
        reader.assign({AT: 0, OTHER: 1})
        assert {AT: [(1, "log-0")], OTHER: [(1, "log-1")]} == polled(reader, 2)
        reader.assign({OTHER: 1})
        assert {OTHER: [(1, "log-1")]} == polled(reader, 1)


@on_the_real_server
def test_reader_of_other_positions_leaves_no_subscription_behind(streams: str) -> None:
    with closing(NatsClient(streams, AT, WAIT_S)) as client, closing(Reader(consumer(), [streams])) as reader:
        client.produce(b"m")
        for _ in range(3):
            reader.assign({AT: 1})
            assert {AT: [(1, "m")]} == polled(reader, 1)
        # One for what the stream brings, and one for replies.
        assert 2 == subscriptions(streams)


@on_the_real_server
def test_reader_of_a_stream_that_is_not_there_says_why_and_reads_it_later(streams: str) -> None:
    with closing(Reader(consumer(), [streams])) as reader:
        asked(streams, "STREAM.DELETE.log-1")
        reader.assign({OTHER: 0})
        refusal = reader.poll().refused[OTHER]
        assert "NotFoundError" in refusal.why and not refusal.out_of_range
        asked(streams, "STREAM.CREATE.log-1", {"name": "log-1", "subjects": ["log-1"], "storage": "memory"})
        with closing(NatsClient(streams, OTHER, WAIT_S)) as client:
            client.produce(b"m")
        assert {OTHER: [(1, "m")]} == polled(reader, 1)
