"""A workload's clients on each client library, against one partition on the wire: what they record."""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.clients import library as recorded
from harness.history.file import History, read_history
from harness.model import Op, OpType, UsageError
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan, Via
from targets.broker.core.messages import ErrorCode, FetchRequest, ProduceRequest
from targets.broker.wire import versions
from targets.kafka_family.clients import kafka_python_work
from targets.kafka_family.clients.beginning import begin, work_of
from targets.kafka_family.clients.libraries import STACKS, stack_of
from targets.kafka_family.clients.librdkafka_work import LibrdkafkaReader
from tests.broker.log.batches import TP, all_of, digests
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.targets.kafka_family.clients.test_workload import Leave, asked, fail_first

pytestmark = pytest.mark.slow

PLACE = Place(TP.topic, TP.partition)
SEED = 3
# What a library calls a position out of range.
REFUSALS = {Library.LIBRDKAFKA: "_AUTO_OFFSET_RESET"}


@pytest.fixture(params=[Library.LIBRDKAFKA, Library.KAFKA_PYTHON, Library.AIOKAFKA])
def library(request: pytest.FixtureRequest) -> Library:
    """Return each library in turn."""
    found: Library = request.param
    return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TinyBroker]:
    """Start a broker with one partition that answers at once."""
    with running(tmp_path / "data") as served:
        yield served


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Open a history for this test alone."""
    with History(tmp_path / "history.jsonl") as made:
        yield made


def produced(nodes: dict[str, str], history: History, library: Library, count: int, **options: Any) -> list[Op]:
    """Let a producer work until so many records have their outcome; return its ops."""
    plan = ProducerPlan(name="p1", places=(PLACE,), **{"batch": (1, 1), "within_ms": 20_000, **options})
    work = work_of(plan, SEED, own=library, process="client-1", history=history, nodes=nodes)
    work(cast(threading.Event, Leave(history, count)))
    return read_history(history.path)


def nodes_of(broker: TinyBroker) -> dict[str, str]:
    return {"A": f"127.0.0.1:{broker.port}"}


def consumed(broker: TinyBroker, history: History, library: Library, is_enough: Any) -> list[Op]:
    """Let a consumer work until its ops are enough; return its completions."""
    at_work = begin(
        Clients(consumers=(ConsumerPlan(name="c1", places=(PLACE,)),)),
        SEED,
        own=library,
        process=lambda: "client-9",
        history=history,
        nodes=nodes_of(broker),
    )

    def ended() -> list[Op]:
        found = [op for op in read_history(history.path) if op.f == "poll"]
        return [op for op in found if op.type is not OpType.INVOKE]

    assert until(lambda: is_enough(ended()), limits.CONDITION_WAIT_S_MAX), ended()
    at_work.stop()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    return ended()


def closed_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


# --- producers --------------------------------------------------------------------------------------------------
def test_producer_records_what_the_log_has(broker: TinyBroker, history: History, library: Library) -> None:
    ops = produced(nodes_of(broker), history, library, 12, batch=(1, 4), codecs=("none", "gzip"))
    invoked = [op for op in ops if op.type is OpType.INVOKE]
    ended = [op for op in ops if op.type is OpType.OK]
    assert digests(all_of(broker.log)) == [op.value["digest"] for op in invoked]
    assert {op.value["value"]: at for at, op in enumerate(invoked)} == {
        op.value["value"]: op.value["offset"] for op in ended
    }


def test_producer_writes_every_codec_that_its_library_is_said_to_have(
    broker: TinyBroker, history: History, library: Library
) -> None:
    codecs = stack_of(library).codecs
    ops = produced(nodes_of(broker), history, library, 30, codecs=codecs)
    assert {OpType.INVOKE, OpType.OK} == {op.type for op in ops}
    assert set(codecs) == {op.value["codec"] for op in ops}


def test_producer_that_waits_for_nobody_has_sent(broker: TinyBroker, history: History, library: Library) -> None:
    ended = produced(nodes_of(broker), history, library, 3, acks=(0,))[1::2]
    assert {OpType.OK} == {op.type for op in ended}
    # librdkafka reports an offset that it made up; the others report none.
    assert library is Library.LIBRDKAFKA or {None} == {op.value.get("offset") for op in ended}


@pytest.mark.parametrize(
    ("retries", "acks", "error", "type_"),
    [
        (0, 1, ErrorCode.NOT_ENOUGH_REPLICAS, OpType.FAIL),
        (0, 1, ErrorCode.REQUEST_TIMED_OUT, OpType.INFO),
        (0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER, OpType.INFO),
        (1, 1, ErrorCode.NOT_ENOUGH_REPLICAS, OpType.OK),
    ],
)
def test_record_that_was_refused_failed_only_if_no_try_was_appended(
    broker: TinyBroker,
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    library: Library,
    *,
    retries: int,
    acks: int,
    error: ErrorCode,
    type_: OpType,
) -> None:
    if library is Library.LIBRDKAFKA and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        type_ = OpType.OK  # it sends the record again by itself
    fail_first(broker, monkeypatch, ProduceRequest, error)
    ops = produced(nodes_of(broker), history, library, 1, retries=retries, acks=(acks,))
    assert [OpType.INVOKE, type_] == [op.type for op in ops]
    assert (2 if type_ is OpType.OK else 1) == len(asked(broker, versions.PRODUCE))


@pytest.mark.parametrize("library", [Library.KAFKA_PYTHON, Library.AIOKAFKA], indirect=True)
def test_leader_that_was_refused_is_looked_for_again(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    fail_first(broker, monkeypatch, ProduceRequest, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    before: list[int] = []
    history.listeners.append(lambda op: before.append(len(asked(broker, versions.METADATA))))

    class LeaveOnceAsked(Leave):
        def is_set(self) -> bool:
            # The second record's invocation is the third op.
            return super().is_set() and len(asked(broker, versions.METADATA)) > before[2]

    plan = ProducerPlan(name="p1", places=(PLACE,), batch=(1, 1), acks=(1,), within_ms=20_000)
    work = work_of(plan, SEED, own=library, process="client-1", history=history, nodes=nodes_of(broker))
    work(cast(threading.Event, LeaveOnceAsked(history, 4)))
    ended = [op.type.value for op in read_history(history.path)[1::2]]
    assert ["ok", "fail", "ok"] == ended[:3]
    assert {"ok"} == {*ended[2:]}


def test_aiokafkas_producer_that_finds_no_node_sends_nothing(history: History) -> None:
    nodes = {"A": f"127.0.0.1:{closed_port()}"}
    ops = produced(nodes, history, Library.AIOKAFKA, 2, within_ms=200)
    assert [(OpType.FAIL, "KafkaConnectionError")] * 2 == [(op.type, op.value["error"]) for op in ops[1::2]]


def test_kafka_pythons_producer_that_finds_no_node_sends_nothing_and_leaves_nothing_open(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    class NoNode:
        def __init__(self, **_: Any) -> None:
            self._manager = self
            self.broker_version_data = None

        def bootstrap(self, _timeout_ms: int) -> None:
            raise kafka_python_work.theirs.KafkaTimeoutError("no node answers")

        def close(self) -> None:
            closed.append("closed")

    monkeypatch.setattr(kafka_python_work, "KafkaClient", NoNode)
    ops = produced({"A": "127.0.0.1:1"}, history, Library.KAFKA_PYTHON, 2)
    assert [(OpType.FAIL, "KafkaTimeoutError")] * 2 == [(op.type, op.value["error"]) for op in ops[1::2]]
    assert ["closed"] * 2 == closed


def test_record_without_a_report_is_unknown_and_ends_once(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    monkeypatch.setattr(importlib.import_module(STACKS[library]), "REPORT_S_MAX", -1000.0)
    whole = broker.answer
    held = threading.Event()

    def answer(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            held.wait(limits.CONDITION_WAIT_S_MAX)
        return whole(request)

    monkeypatch.setattr(broker, "answer", answer)
    plan = ProducerPlan(name="p1", places=(PLACE,), batch=(1, 1), within_ms=20_000)
    work = work_of(plan, SEED, own=library, process="client-1", history=history, nodes=nodes_of(broker))
    leave = Leave(history, 1)
    history.listeners.append(lambda op: held.set() if op.type is not OpType.INVOKE else None)
    work(cast(threading.Event, leave))
    ops = read_history(history.path)
    assert [OpType.INVOKE, OpType.INFO] == [op.type for op in ops]
    assert recorded.NO_REPORT == ops[1].value["error"]


# --- consumers --------------------------------------------------------------------------------------------------
def test_consumer_reads_on_and_a_poll_that_brings_nothing_fails(
    broker: TinyBroker, history: History, library: Library
) -> None:
    ops = produced(nodes_of(broker), history, library, 3)
    sent = [op.value["value"] for op in ops if op.type is OpType.OK]
    polls = consumed(broker, history, library, lambda ends: len(ends) > 3 and ends[-1].value["position"] == 3)
    read = [record for op in polls for record in op.value.get("records", ())]
    assert [[at, value] for at, value in enumerate(sent)] == [list(record) for record in read]
    assert {3} == {op.value["high_watermark"] for op in polls if op.type is OpType.OK}
    assert {recorded.NOTHING} == {op.value["error"] for op in polls if op.type is OpType.FAIL}
    assert {""} == {op.value["node"] for op in polls}


def test_consumer_that_is_out_of_range_sees_it_and_begins_again(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    produced(nodes_of(broker), history, library, 2)
    fail_first(broker, monkeypatch, FetchRequest, ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)

    def read_from_0(ends: list[Op]) -> list[Op]:
        return [op for op in ends if op.type is OpType.OK and op.value["position"] == 0]

    polls = consumed(broker, history, library, lambda ends: len(read_from_0(ends)) > 1)
    assert [True, True] == [op.value["sought"] for op in read_from_0(polls)]
    # A poll may bring the records and then the refusal, which it does not record.
    errors = {op.value["error"] for op in polls if op.type is OpType.FAIL} - {recorded.NOTHING}
    assert errors <= {REFUSALS.get(library, "OffsetOutOfRangeError")}


# --- what is refused --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("own", "clients", "complaint"),
    [
        (
            Library.LIBRDKAFKA,
            Clients(consumers=(ConsumerPlan(name="c2", places=(PLACE,), via=Via.EVERY),)),
            r"librdkafka: consumer c2 via=every; expected via=leader, .*: raw",
        ),
        (
            Library.RAW,
            Clients(
                producers=(
                    ProducerPlan(name="p1", places=(PLACE,), codecs=("gzip", "zstd"), client=Library.KAFKA_PYTHON),
                )
            ),
            "kafka-python: producer p1 codecs=zstd; expected of none, gzip",
        ),
        (
            Library.LIBRDKAFKA,
            Clients(
                producers=(ProducerPlan(name="p1", places=(PLACE,), client=Library.KAFKA_PYTHON),),
            ),
            "kafka-python: p1 with brokers older than 0.11; expected client librdkafka, or none",
        ),
        (
            Library.RAW,
            Clients(
                producers=(ProducerPlan(name="p1", places=(PLACE,), codecs=("lz4",)),),
                consumers=(ConsumerPlan(name="c1", places=(PLACE,), client=Library.KAFKA_PYTHON),),
            ),
            "kafka-python: consumer c1 of records in codecs=lz4; expected of none, gzip",
        ),
    ],
)
def test_client_that_is_impossible_is_refused_before_anything_starts(
    history: History, own: Library, clients: Clients, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        begin(clients, SEED, own=own, process=lambda: "client-1", history=history, nodes={})
    assert [] == read_history(history.path)


def test_every_library_has_its_place() -> None:
    assert {*Library} - {Library.RAW} == {*STACKS}


def test_librdkafkas_consumer_speaks_for_no_group() -> None:
    settings = LibrdkafkaReader(ConsumerPlan(name="c1", places=(PLACE,)), ["x:1"], "client-1").settings
    assert (False, False, "error") == (
        settings["enable.auto.commit"],
        settings["enable.auto.offset.store"],
        settings["auto.offset.reset"],
    )
