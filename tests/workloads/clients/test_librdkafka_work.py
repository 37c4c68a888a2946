"""A workload's producers and consumers on librdkafka, against one partition on the wire: what they record."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.history.file import History, read_history
from harness.model import Op, OpType, UsageError
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from targets.broker.core.messages import ErrorCode, FetchRequest, ProduceRequest
from tests.broker.log.batches import TP, all_of, digests
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.workloads.clients.test_workload import Leave, fail_first
from workloads.clients import librdkafka_work
from workloads.clients.librdkafka import LibrdkafkaClient
from workloads.clients.librdkafka_work import LibrdkafkaConsumer, LibrdkafkaProducer

pytestmark = pytest.mark.slow

PLACE = Place(TP.topic, TP.partition)
SEED = 3


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


def client_of(broker: TinyBroker, history: History) -> LibrdkafkaClient:
    return LibrdkafkaClient(history=history, bootstrap=lambda: [f"127.0.0.1:{broker.port}"])


def produced(broker: TinyBroker, history: History, count: int, **options: Any) -> list[Op]:
    """Let a producer work until so many records have their outcome; return its ops."""
    plan = ProducerPlan(name="p1", places=(PLACE,), **{"batch": (1, 1), "within_ms": 20_000, **options})
    settings = client_of(broker, history)._config()
    producer = LibrdkafkaProducer(plan, SEED, process="client-1", history=history, settings=settings)
    producer.run(cast(threading.Event, Leave(history, count)))
    return read_history(history.path)


def consumed(broker: TinyBroker, history: History, is_enough: Any) -> list[Op]:
    """Let a consumer work until its ops are enough; return its completions."""
    at_work = client_of(broker, history).begin_workload(
        Clients(consumers=(ConsumerPlan(name="c1", places=(PLACE,)),)),
        SEED,
        nodes={"A": f"127.0.0.1:{broker.port}"},
    )

    def ended() -> list[Op]:
        found = [op for op in read_history(history.path) if op.f == "poll"]
        return [op for op in found if op.type is not OpType.INVOKE]

    assert until(lambda: is_enough(ended()), limits.CONDITION_WAIT_S_MAX)
    at_work.stop()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    return ended()


def test_producer_records_what_the_log_has(broker: TinyBroker, history: History) -> None:
    ops = produced(broker, history, 12, batch=(1, 4), codecs=("none", "lz4"))
    invoked = [op for op in ops if op.type is OpType.INVOKE]
    ended = [op for op in ops if op.type is OpType.OK]
    assert digests(all_of(broker.log)) == [op.value["digest"] for op in invoked]
    assert {op.value["value"]: at for at, op in enumerate(invoked)} == {
        op.value["value"]: op.value["offset"] for op in ended
    }


@pytest.mark.parametrize(
    ("retries", "error", "type_"),
    [
        (0, ErrorCode.NOT_ENOUGH_REPLICAS, OpType.FAIL),
        (0, ErrorCode.REQUEST_TIMED_OUT, OpType.INFO),
        (1, ErrorCode.NOT_ENOUGH_REPLICAS, OpType.OK),
    ],
)
def test_record_that_was_refused_failed_only_if_no_try_was_appended(
    broker: TinyBroker,
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    *,
    retries: int,
    error: ErrorCode,
    type_: OpType,
) -> None:
    fail_first(broker, monkeypatch, ProduceRequest, error)
    assert [OpType.INVOKE, type_] == [op.type for op in produced(broker, history, 1, retries=retries, acks=(1,))]


def test_record_without_a_report_is_unknown_and_ends_once(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librdkafka_work, "REPORT_S_MAX", -1000.0)
    ops = produced(broker, history, 3)
    assert [OpType.INVOKE, OpType.INFO] * 3 == [op.type for op in ops]
    assert {"no report"} == {op.value["error"] for op in ops if op.type is OpType.INFO}


def test_consumer_reads_on_and_a_poll_that_brings_nothing_fails(broker: TinyBroker, history: History) -> None:
    sent = [op.value["value"] for op in produced(broker, history, 3) if op.type is OpType.OK]
    polls = consumed(broker, history, lambda ends: len(ends) > 3 and ends[-1].value["position"] == 3)
    read = [record for op in polls for record in op.value.get("records", ())]
    assert [[at, value] for at, value in enumerate(sent)] == [list(record) for record in read]
    assert {3} == {op.value["high_watermark"] for op in polls if op.type is OpType.OK}
    assert {"nothing came"} == {op.value["error"] for op in polls if op.type is OpType.FAIL}
    assert {""} == {op.value["node"] for op in polls}


def test_consumer_that_is_out_of_range_sees_it_and_begins_again(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    produced(broker, history, 2)
    fail_first(broker, monkeypatch, FetchRequest, ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)

    def refusal(ends: list[Op]) -> int:
        errors = (op.value.get("error") for op in ends)
        return next((at for at, error in enumerate(errors) if error not in (None, "nothing came")), len(ends))

    polls = consumed(broker, history, lambda ends: any(op.type is OpType.OK for op in ends[refusal(ends) :]))
    refused = refusal(polls)
    assert (2, "_AUTO_OFFSET_RESET") == (polls[refused].value["position"], polls[refused].value["error"])
    assert (0, True) == (polls[refused + 1].value["position"], polls[refused + 1].value["sought"])


def test_consumer_that_would_ask_every_node_is_refused_before_anything_starts(
    broker: TinyBroker, history: History
) -> None:
    clients = Clients(
        producers=(ProducerPlan(name="p1", places=(PLACE,)),),
        consumers=(ConsumerPlan(name="c2", places=(PLACE,), via=Via.EVERY),),
    )
    with pytest.raises(UsageError, match=r"librdkafka: consumer c2 via=every; expected via=leader, .*: raw"):
        client_of(broker, history).begin_workload(clients, SEED, nodes={"A": "127.0.0.1:1"})
    assert ([], []) == (read_history(history.path), broker.seen)


def test_consumer_speaks_for_no_group() -> None:
    plan = ConsumerPlan(name="c1", places=(PLACE,))
    settings = LibrdkafkaConsumer(
        plan, SEED, process="client-1", history=cast(History, None), settings={}
    )._settings
    assert (False, False, "error") == (
        settings["enable.auto.commit"],
        settings["enable.auto.offset.store"],
        settings["auto.offset.reset"],
    )
