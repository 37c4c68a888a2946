"""A target's plain client (append, read) as a run's whole client: what the history has of each call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.clients import plain, plain_nodes
from harness.clients.plain_part import PlainClients
from harness.history.file import History, read_history
from harness.model import Op, OpType, PreconditionError, UsageError
from harness.target.clients import Client, TargetClients
from harness.target.log_client import AtNode, Found, NotNow, Refused
from harness.workload.plan import ChurnPlan, Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from tests.workloads.peers import peer

AT = Place("log", 0)
NODES = ("a:1", "b:1", "c:1")


@dataclass
class Log:
    """
    A log that one node leads.

    Attributes:
        before: called with each node that is asked, before it answers.
        asked: who was asked for what.
    """

    leader: str = "b:1"
    records: list[Found] = field(default_factory=list)
    before: Callable[[str], None] = lambda _: None
    asked: list[tuple[str, str]] = field(default_factory=list)
    closed: int = 0

    def of(self, node: str, what: str) -> list[Found]:
        """Return the records, for the leader alone."""
        self.asked.append((node, what))
        self.before(node)
        if node != self.leader:
            raise Refused("not the leader")
        return self.records

    def appended(self, value: bytes) -> int:
        """Append a value; return its offset."""
        self.records.append(Found(len(self.records), value))
        return len(self.records) - 1


LOGS: dict[str, Log] = {}


class ToyClient(AtNode):
    """The client of such a log: all that a target has to write."""

    @property
    def log(self) -> Log:
        return LOGS["log"]

    def produce(self, value: bytes) -> int:
        self.log.of(self.address, "produce")
        return self.log.appended(value)

    def read(self, first: int) -> Sequence[Found]:
        return [record for record in self.log.of(self.address, "read") if record.offset >= first][:2]

    def close(self) -> None:
        self.log.closed += 1


class AbleClient(ToyClient):
    """One that can do more."""

    def create(self, assignments: Sequence[Sequence[int]]) -> None:
        self.log.of(self.address, f"create {assignments}")

    def delete_before(self, offset: int) -> int:
        self.log.of(self.address, "delete")[:offset] = []
        return offset

    def serves(self) -> bool:
        return self.address != "a:1"

    def leads(self) -> bool:
        return self.address == self.log.leader


@pytest.fixture
def log() -> Iterator[Log]:
    LOGS["log"] = Log()
    yield LOGS["log"]
    LOGS.clear()


def client_of(history: History, kind: type[ToyClient] = ToyClient) -> Client:
    part: TargetClients = PlainClients(make_one=kind, target="toy")
    return part.make(part.own({}), history=history, bootstrap=lambda: NODES)


def ended(history: History) -> list[tuple[OpType, object, str]]:
    """Return type, offset and error of each produce that ended."""
    return [
        (op.type, op.value.get("offset"), op.value.get("error", ""))
        for op in read_history(history.path)
        if op.type is not OpType.INVOKE
    ]


# --- produce ---------------------------------------------------------------------------------------------------
def test_node_that_refuses_is_not_the_last_to_be_asked(log: Log, history: History) -> None:
    client = client_of(history)
    assert [0, 1] == client.produce("log", 0, "m1", ["m1.0", "m1.1"], acks=-1)
    assert [b"m1.0", b"m1.1"] == [record.value for record in log.records]
    # The second value goes to the node that took the first.
    assert [("a:1", "produce"), ("b:1", "produce"), ("b:1", "produce")] == log.asked
    assert [(OpType.OK, 0, ""), (OpType.OK, 1, "")] == ended(history)
    assert {"client-1"} == {op.process for op in read_history(history.path)}
    assert 2 == log.closed


def test_node_that_cannot_now_is_asked_again_and_no_other_meanwhile(log: Log, history: History) -> None:
    def lags(node: str) -> None:
        if node == "b:1" and log.asked.count((node, "produce")) < 3:
            raise NotNow("too few followers")

    log.before = lags
    assert [0] == client_of(history).produce("log", 0, "m1", ["m1.0"], acks=-1)
    assert 3 * [("a:1", "produce"), ("b:1", "produce")] == log.asked
    assert [(OpType.OK, 0, "")] == ended(history)


def test_value_that_every_node_refuses_was_certainly_not_appended(log: Log, history: History) -> None:
    log.leader = "nobody"
    with pytest.raises(PreconditionError, match=r"produce m1 acks=-1: 0 of 2 records .* not the leader"):
        client_of(history).produce("log", 0, "m1", ["m1.0", "m1.1"], acks=-1, timeout_s=0.05)
    assert [(OpType.FAIL, None, "a:1: not the leader; b:1: not the leader; c:1: not the leader")] == ended(history)
    assert [] == log.records


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionResetError("reset"), ValueError("bad")])
def test_any_other_error_leaves_it_unknown_and_no_node_is_asked_again(
    log: Log, history: History, error: Exception
) -> None:
    def fails(node: str) -> None:
        if node == log.leader:
            raise error

    log.before = fails
    with pytest.raises(PreconditionError, match=str(error)):
        client_of(history).produce("log", 0, "m1", ["m1.0"], acks=-1)
    assert [(OpType.INFO, None, f"{type(error).__name__}: {error}")] == ended(history)
    assert [("a:1", "produce"), ("b:1", "produce")] == log.asked


def test_node_that_does_not_listen_was_asked_nothing(log: Log, history: History) -> None:
    def down(node: str) -> None:
        if node == "a:1":
            raise ConnectionRefusedError("refused")

    log.before = down
    assert [0] == client_of(history).produce("log", 0, "m1", ["m1.0"], acks=-1)


@pytest.mark.parametrize("answer", [None, -1, "0"])
def test_answer_that_is_no_offset_acknowledges_nothing(
    log: Log, history: History, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    log.leader = "a:1"
    monkeypatch.setattr(Log, "appended", lambda *_: answer)
    with pytest.raises(PreconditionError, match="expected an offset from 0 on"):
        client_of(history).produce("log", 0, "m1", ["m1.0"], acks=-1)
    assert [OpType.INFO] == [type_ for type_, *_ in ended(history)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"acks": 1}, "acks=1"),
        ({"acks": -1, "codec": "gzip"}, "codec gzip"),
        ({"acks": -1, "age_ms": 5}, "an age"),
    ],
)
def test_what_the_client_cannot_say_is_refused_before_anything_is_sent(
    log: Log, history: History, options: dict[str, object], why: str
) -> None:
    with pytest.raises(UsageError, match=f"produce m1 with {why}; the target's client cannot say it"):
        client_of(history).produce("log", 0, "m1", ["m1.0"], **options)  # type: ignore[arg-type]
    assert ([], []) == (log.asked, read_history(history.path))


def test_node_that_is_named_is_the_only_one_that_is_asked(log: Log, history: History) -> None:
    with pytest.raises(PreconditionError, match="not the leader"):
        client_of(history).produce("log", 0, "m1", ["m1.0"], acks=-1, via="c:1", timeout_s=0.01)
    assert {("c:1", "produce")} == set(log.asked)


# --- read ------------------------------------------------------------------------------------------------------
def test_read_goes_on_until_nothing_more_comes(log: Log, history: History) -> None:
    for number in range(5):
        log.appended(b"m1.%d" % number)
    assert [(number, f"m1.{number}") for number in range(5)] == client_of(history).read_all("log", 0)
    (read,) = (op for op in read_history(history.path) if op.type is OpType.OK)
    assert (5, 5) == (read.value["high_watermark"], len(read.value["records"]))


def test_read_that_fails_at_one_node_is_asked_of_another(log: Log, history: History) -> None:
    log.appended(b"m1.0")

    def once(node: str) -> None:
        if node == "b:1" and ("b:1", "read") not in log.asked[:-1]:
            raise TimeoutError

    log.before = once
    assert [(0, "m1.0")] == client_of(history).read_all("log", 0)


@pytest.mark.parametrize("offset", [0, 7])
def test_read_that_never_ends_is_cut_off_and_says_what_came(
    log: Log, history: History, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    """A reader that brings one record for ever goes back; one whose offsets rise for ever has too many."""
    monkeypatch.setattr(plain, "RECORDS_MAX", 100)
    monkeypatch.setattr(limits, "CLIENT_OPERATION_S_MAX", 0.1)
    rises = bool(offset)
    monkeypatch.setattr(ToyClient, "read", lambda _, first: [Found(first + offset if rises else 0, b"again")])
    wrong = "expected the log to end" if rises else "expected records with a value of bytes at offsets that rise"
    with pytest.raises(PreconditionError, match=f"target toy, clients: .*{wrong}"):
        client_of(history).read_all("log", 0)
    assert [OpType.FAIL] == [type_ for type_, *_ in ended(history)]


# --- what a client may lack ------------------------------------------------------------------------------------
def test_topic_is_made_and_records_deleted_if_the_client_can(log: Log, history: History) -> None:
    client_of(history).create_topic("log", [1, 2])
    assert ("b:1", "create [[1, 2]]") not in log.asked
    able = client_of(history, AbleClient)
    able.create_topic("log", [1, 2])
    assert ("b:1", "create [[1, 2]]") in log.asked
    log.appended(b"m1.0")
    assert 1 == able.delete_records("log", 0, 1)
    assert [] == log.records
    (deleted,) = (op for op in read_history(history.path) if op.type is OpType.OK)
    assert 1 == deleted.value["low_watermark"]


def test_call_that_the_client_lacks_is_refused(log: Log, history: History) -> None:
    client = client_of(history)
    with pytest.raises(UsageError, match="the target's client has no delete_before"):
        client.delete_records("log", 0, 1)
    with pytest.raises(UsageError, match="the target's client has no such call"):
        client.alter_topic("log", "retention.ms", "1")
    with pytest.raises(UsageError, match="the target's client has no such call"):
        client.add_partitions("log", 1, ["A"], ids={"A": 1})
    assert [] == read_history(history.path)


def test_node_is_asked_what_it_says_of_itself_if_the_client_can(log: Log) -> None:
    able = PlainClients(make_one=AbleClient)
    assert [False, True] == [able.serves(node) for node in ("a:1", "b:1")]
    assert [False, True] == [able.leads(node, "log", 0) for node in ("a:1", "b:1")]
    toy = PlainClients(make_one=ToyClient)
    assert toy.leads("a:1", "log", 0)
    with peer(lambda _: None) as address:
        assert toy.serves(address)
    assert not toy.serves("127.0.0.1:1")


def test_client_of_another_name_is_refused(history: History) -> None:
    with pytest.raises(UsageError, match="unknown client 'raw': expected one of plain"):
        PlainClients(make_one=ToyClient).make("raw", history=history, bootstrap=list)


@pytest.mark.parametrize(
    ("plans", "why"),
    [
        (Clients(producers=(ProducerPlan(name="p1", places=(AT,), acks=(1,)),)), "producer p1 with acks=1"),
        (Clients(producers=(ProducerPlan(name="p1", places=(AT,), codecs=("lz4",)),)), "with codec lz4"),
        (Clients(producers=(ProducerPlan(name="p1", places=(AT,), keys=2),)), "producer p1 with keys"),
        (Clients(producers=(ProducerPlan(name="p1", places=(AT,), retries=2),)), "producer p1 with retries"),
        (Clients(consumers=(ConsumerPlan(name="c1", places=(AT,), client=Library.JAVA),)), "client java: c1"),
        (Clients(consumers=(ConsumerPlan(name="c1", places=(AT,), kill_after=(1, 2)),)), "c1 kill_after="),
        (Clients(churners=(ChurnPlan(name="t1", topic="t", nodes=("A",)),)), "churner t1: the target's client"),
    ],
)
def test_client_of_a_workload_that_needs_more_is_impossible(history: History, plans: Clients, why: str) -> None:
    assert why in next(iter(PlainClients(make_one=ToyClient).impossible(plans, "plain")))
    with pytest.raises(UsageError, match=why):
        client_of(history).begin_workload(plans, 1, nodes={"A": "a:1"})


# --- a workload ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("via", Via)
def test_workload_s_clients_are_recorded_as_those_of_any_library(log: Log, history: History, via: Via) -> None:
    plans = Clients(
        producers=(ProducerPlan(name="p1", places=(AT,), every_ms=(0, 1), within_ms=50),),
        consumers=(ConsumerPlan(name="c1", places=(AT,), via=via, every_ms=(0, 1)),),
    )
    work = client_of(history).begin_workload(plans, 1, nodes=dict(zip("ABC", NODES, strict=True)))

    def polled() -> list[Op]:
        return [op for op in read_history(history.path) if op.f == "poll" and op.type is OpType.OK]

    assert until(lambda: len(polled()) > 3, limits.CONDITION_WAIT_S_MAX)
    log.leader = "c:1"
    after = len(log.records)
    assert until(lambda: len(log.records) > after + 3, limits.CONDITION_WAIT_S_MAX)
    work.stop_producing()
    assert until(lambda: work.produced, limits.CONDITION_WAIT_S_MAX)
    work.stop()
    assert until(lambda: work.done, limits.CONDITION_WAIT_S_MAX)
    sent = [op for op in read_history(history.path) if op.f == "produce" and op.type is OpType.OK]
    assert [(op.value["offset"], op.value["value"].encode()) for op in sent] == [
        tuple(each) for each in log.records
    ]
    positions = [op.value["position"] for op in polled()]
    assert positions == sorted(positions)


def test_client_that_hangs_is_left_behind_and_named(
    log: Log, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_nodes, "HANGS_S", 0.05)
    end = threading.Event()
    log.before = lambda _: assert_ended(end)
    with pytest.raises(PreconditionError, match=r"toy, clients: no answer of the client at a:1 for 0\.05 s"):
        client_of(history).produce("log", 0, "m1", ["m1.0"], acks=-1)
    assert [OpType.INFO] == [type_ for type_, *_ in ended(history)]
    end.set()


def assert_ended(end: threading.Event) -> None:
    assert end.wait(limits.CONDITION_WAIT_S_MAX)


def test_patience_is_handed_to_every_client(log: Log) -> None:
    made: list[ToyClient] = []

    def make(address: str, place: Place, patience_s: float) -> ToyClient:
        made.append(ToyClient(address, place, patience_s))
        return made[-1]

    nodes = plain_nodes.PlainNodes(make, lambda: NODES)
    assert [] == nodes.ask(AT, 1.0, lambda client: client.read(0))
    assert [("a:1", AT, plain_nodes.PATIENCE_S), ("b:1", AT, plain_nodes.PATIENCE_S)] == [
        (each.address, each.place, each.patience_s) for each in made
    ]


def test_workload_is_played_as_far_as_the_client_can(history: History) -> None:
    able = ProducerPlan(name="p1", places=(AT,), batch=(1, 9), within_ms=7)
    plans = Clients(
        producers=(
            replace(able, acks=(0, 1), codecs=("lz4",), keys=3, tombstones=0.5, together=0.3, retries=2),
            replace(able, name="p2", client=Library.JAVA),
        ),
        consumers=(ConsumerPlan(name="c1", places=(AT,), kill_after=(1, 2)),),
        churners=(ChurnPlan(name="t1", topic="t", nodes=("A",)),),
    )
    part = PlainClients(make_one=ToyClient)
    fit = part.fit(plans)
    assert (able, ConsumerPlan(name="c1", places=(AT,))) == (*fit.producers, *fit.consumers)
    assert [] == [*part.impossible(fit, "plain")]
    assert ("acks=1", "codec lz4", "") == (
        part.unsendable(1, "none"),
        part.unsendable(-1, "lz4"),
        part.unsendable(-1, "none"),
    )
