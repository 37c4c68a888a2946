"""Apache Kafka's Java clients, as processes, against one partition on the wire: what they record, how they end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import limits
from harness.cleanup.ledger import Ledger
from harness.cleanup.process import until
from harness.clients.threads import Threads
from harness.history.file import History, read_history
from harness.model import OpType, UsageError
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan
from targets.broker.core.messages import ErrorCode, FetchRequest, ProduceRequest
from targets.broker.core.rules import PROTOCOLS
from targets.broker.wire import client_rows, versions
from targets.kafka_family.clients.beginning import begin
from tests.broker.log.batches import TP, all_of, digests
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.needs import needs
from tests.targets.kafka_family.clients.test_workload import asked, fail_first

pytestmark = [pytest.mark.kafka, pytest.mark.slow, needs("java-clients")]

PLACE = Place(TP.topic, TP.partition)
SEED = 3


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TinyBroker]:
    """Start a broker with one partition that answers at once, as to clients."""
    with running(tmp_path / "data") as served:
        served.rows = client_rows("kip380", PROTOCOLS["kip380"])
        yield served


def begun(broker: TinyBroker, history: History, ledger: Ledger, clients: Clients) -> Threads:
    names = (f"client-{number}" for number in range(1, 100))
    return begin(
        clients,
        SEED,
        own=Library.JAVA,
        process=lambda: next(names),
        history=history,
        nodes={"A": f"127.0.0.1:{broker.port}"},
        ledger=ledger,
    )


def ended(history: History, f: str) -> list[Any]:
    return [op for op in read_history(history.path) if op.f == f and op.type is not OpType.INVOKE]


def producer(**options: Any) -> ProducerPlan:
    return ProducerPlan(name="p1", places=(PLACE,), **{"within_ms": 20_000, "every_ms": (0, 5), **options})


def test_what_one_writes_the_other_reads_and_both_end_with_their_run(
    broker: TinyBroker, history: History, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Clients(producers=(producer(acks=(-1, 1, 0), batch=(1, 4), codecs=("none", "gzip")),))
    at_work = begun(broker, history, ledger, writes)
    assert until(lambda: len(ended(history, "produce")) > 20, limits.CONDITION_WAIT_S_MAX), broker.seen
    at_work.stop()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    held = [op for op in read_history(history.path) if op.f == "produce" and op.type is OpType.INVOKE]
    assert digests(all_of(broker.log)) == [op.value["digest"] for op in held]
    ends = {op.value["value"]: (op.type, op.value.get("offset")) for op in ended(history, "produce")}
    assert {op.value["value"]: (OpType.OK, at if op.value["acks"] else None) for at, op in enumerate(held)} == ends
    values = [op.value["value"] for op in held]

    # --- all is there; a refusal comes with the second fetch
    fail_first(broker, monkeypatch, FetchRequest, ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
    reads = Clients(consumers=(ConsumerPlan(name="c1", places=(PLACE,), every_ms=(0, 5)),))
    at_work = begun(broker, history, ledger, reads)

    def read() -> list[Any]:
        return [op for op in ended(history, "poll") if op.type is OpType.OK]

    def is_read() -> bool:
        """It was refused, began again, and came to the end."""
        begins = [op for op in read() if op.value["position"] == 0]
        return len(begins) > 1 and read()[-1].value["records"][-1][0] == len(values) - 1

    assert until(is_read, limits.CONDITION_WAIT_S_MAX), ended(history, "poll")
    at_work.stop()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    records = [record for op in read() for record in op.value["records"]]
    assert dict(enumerate(values)) == dict(records)
    assert {len(values)} == {op.value["high_watermark"] for op in read()[-1:]}
    refused = {op.value["error"] for op in ended(history, "poll") if op.type is OpType.FAIL} - {"nothing came"}
    assert refused <= {"OffsetOutOfRangeException"}
    # Each process was waited for, so that nothing is left to undo.
    assert {} == ledger._entries


def test_refused_record_failed_only_if_it_surely_was_not_appended_and_is_sent_once(
    broker: TinyBroker, history: History, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    fail_first(broker, monkeypatch, ProduceRequest, *errors)
    at_work = begun(broker, history, ledger, Clients(producers=(producer(batch=(1, 1)),)))
    assert until(lambda: len(ended(history, "produce")) > 3, limits.CONDITION_WAIT_S_MAX), broker.seen
    at_work.stop()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)
    outcomes = [(op.type.value, op.value.get("error", "")) for op in ended(history, "produce")]
    expected = [("fail", "NOT_ENOUGH_REPLICAS"), ("info", "TimeoutException"), ("info", "NOT_LEADER_OR_FOLLOWER")]
    assert [*expected, ("ok", "")] == outcomes[:4]
    assert len(outcomes) == len(asked(broker, versions.PRODUCE))


def test_run_that_is_taken_down_leaves_no_process_and_its_history_takes_no_more(
    broker: TinyBroker, history: History, ledger: Ledger
) -> None:
    at_work = begun(broker, history, ledger, Clients(producers=(producer(),)))
    assert until(lambda: bool(ended(history, "produce")), limits.CONDITION_WAIT_S_MAX), broker.seen
    assert [] == ledger.close()
    assert until(lambda: at_work.done, limits.CONDITION_WAIT_S_MAX)


def test_client_without_a_ledger_is_refused(broker: TinyBroker, history: History) -> None:
    with pytest.raises(UsageError, match="client java: p1: expected a run with a ledger"):
        begin(
            Clients(producers=(producer(),)),
            SEED,
            own=Library.JAVA,
            process=lambda: "client-1",
            history=history,
            nodes={"A": f"127.0.0.1:{broker.port}"},
        )
