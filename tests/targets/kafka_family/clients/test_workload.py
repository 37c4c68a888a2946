"""A workload's producers and consumers against one partition on the wire: what they ask, and what they record."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.clients import clock
from harness.events import Done
from harness.history.file import History, read_history
from harness.model import HistoryError, Op, OpType
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan, Via
from harness.workload.script import ProducerScript
from targets.broker.core.messages import (
    ErrorCode,
    FetchRequest,
    FetchResponse,
    FetchResult,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Request,
    Response,
)
from targets.broker.log import split_produced
from targets.broker.wire import decode_request, encode_response, versions
from targets.kafka_family.clients import churning, network, producing, questions
from targets.kafka_family.clients.connection import Connection
from targets.kafka_family.clients.consuming import Consumer, opened
from targets.kafka_family.clients.producing import Producer
from targets.kafka_family.clients.raw import RawClient
from targets.kafka_family.wire.errors import ErrorCode as WireErrorCode
from tests.broker.log.batches import TP
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.workloads.peers import peer

pytestmark = pytest.mark.slow

PLACE = Place(TP.topic, TP.partition)
SEED = 3
# Long enough for any machine.
WITHIN_MS = 1000 * limits.SCENARIO_TIME_S_MAX


class Leave:
    """An event that is set once the history has so many ops, and that never waits."""

    def __init__(self, history: History, count: int) -> None:
        self._left = count
        history.listeners.append(self._listen)

    def _listen(self, op: Op) -> None:
        self._left -= op.type is not OpType.INVOKE

    def is_set(self) -> bool:
        return self._left <= 0

    def wait(self, timeout: float) -> bool:
        assert timeout >= 0
        return self.is_set()


class Overtime(Leave):
    """Whenever its client waits, the time that this client has for anything is over, on its clock alone."""

    def __init__(self, history: History, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(history, count)
        self._skipped_s = 0.0
        for module in (churning, clock, network, producing):
            monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped_s

    def wait(self, timeout: float) -> bool:
        self._skipped_s += limits.SCENARIO_TIME_S_MAX
        return super().wait(timeout)


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


def nodes(broker: TinyBroker) -> dict[str, str]:
    """Return the nodes as a run names them."""
    return {"A": f"127.0.0.1:{broker.port}"}


def produced(
    broker: TinyBroker, history: History, count: int, leave: Leave | None = None, **options: Any
) -> list[Op]:
    """Let a producer work until so many records have their outcome; return its ops."""
    plan = ProducerPlan(name="p1", places=(PLACE,), **{"batch": (1, 1), **options})
    producer = Producer(plan, SEED, process="client-1", history=history, nodes=nodes(broker))
    producer.run(cast(threading.Event, leave or Leave(history, count)))
    return read_history(history.path)


def consumed(broker: TinyBroker, history: History, count: int, **options: Any) -> list[Op]:
    """Let a consumer work until so many polls have ended; return its completions."""
    plan = ConsumerPlan(name="c1", places=(PLACE,), **{"wait_ms": 0, **options})
    consumer = Consumer(plan, SEED, process="client-9", history=history, nodes=nodes(broker))
    consumer.run(cast(threading.Event, Leave(history, count)))
    mine = [op for op in read_history(history.path) if op.process == "client-9"]
    assert ["invoke", "end"] * count == ["invoke" if op.type is OpType.INVOKE else "end" for op in mine]
    return mine[1::2]


def fail_first(broker: TinyBroker, monkeypatch: pytest.MonkeyPatch, kind: type, *errors: ErrorCode) -> None:
    """Let the broker answer the first requests of this kind with these errors, one each, and do nothing."""
    whole, queue = broker.answer, list(errors)

    def answer(request: Request) -> Response:
        if not isinstance(request, kind) or not queue or (error := queue.pop(0)) is ErrorCode.NONE:
            return whole(request)
        if kind is FetchRequest:
            failed = FetchResult(tp=TP, error=error, high_watermark=-1, log_start_offset=-1, batches=())
            return FetchResponse(results=(failed,))
        return ProduceResponse(results=(ProduceResult(tp=TP, error=error),))

    monkeypatch.setattr(broker, "answer", answer)


def asked(broker: TinyBroker, key: int) -> list[int]:
    """Return the versions of the requests with this API key that the broker received."""
    return [version for seen, version in broker.seen if seen == key]


# --- producers --------------------------------------------------------------------------------------------------
def test_producer_sends_what_its_script_says_over_one_connection(broker: TinyBroker, history: History) -> None:
    ops = produced(broker, history, 30, batch=(1, 5), codecs=("gzip", "zstd"), acks=(-1, 1))
    script = ProducerScript(
        ProducerPlan(name="p1", places=(PLACE,), batch=(1, 5), codecs=("gzip", "zstd"), acks=(-1, 1)), SEED
    )
    sends = [(script.pause_ms(), script.next())[1] for _ in asked(broker, versions.PRODUCE)]
    expected = [(send.acks, send.codec, value) for send in sends for _, values in send.parts for value in values]
    sent = [op for op in ops if op.type is OpType.INVOKE]
    assert expected == [(op.value["acks"], op.value["codec"], op.value["value"]) for op in sent]
    assert list(range(len(sent))) == [op.value["offset"] for op in ops if op.type is OpType.OK]
    assert {"client-1"} == {op.process for op in ops}
    assert (1, 1) == (len(broker.transports), len(asked(broker, versions.METADATA)))


def test_producer_that_waits_for_nobody_has_sent(broker: TinyBroker, history: History) -> None:
    ops = produced(broker, history, 3, acks=(0,))
    assert [(OpType.OK, None)] * 3 == [(op.type, op.value.get("offset")) for op in ops[1::2]]


@pytest.mark.parametrize(
    ("errors", "retries", "type_", "sent"),
    [
        ([ErrorCode.REQUEST_TIMED_OUT], 0, OpType.INFO, 1),
        ([ErrorCode.NOT_ENOUGH_REPLICAS], 0, OpType.FAIL, 1),
        ([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE], 1, OpType.OK, 2),
        ([ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE], 2, OpType.OK, 2),
        ([ErrorCode.NOT_ENOUGH_REPLICAS] * 3, 2, OpType.FAIL, 3),
        ([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT], 1, OpType.INFO, 2),
        ([ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS], 1, OpType.INFO, 2),
    ],
)
def test_record_failed_only_if_no_try_may_have_been_appended(
    broker: TinyBroker,
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    *,
    errors: list[ErrorCode],
    retries: int,
    type_: OpType,
    sent: int,
) -> None:
    fail_first(broker, monkeypatch, ProduceRequest, *errors)
    ops = produced(broker, history, 1, retries=retries, within_ms=WITHIN_MS)
    assert [OpType.INVOKE, type_] == [op.type for op in ops]
    assert sent == len(asked(broker, versions.PRODUCE))


def test_idempotent_producer_sends_a_batch_again_with_its_numbers_and_goes_on_in_another_epoch_after_a_doubt(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: KIP-98; KIP-360."""
    late = ErrorCode.REQUEST_TIMED_OUT
    fail_first(broker, monkeypatch, ProduceRequest, ErrorCode.NONE, late, ErrorCode.NONE, late, late)
    sent: list[tuple[int, int, int]] = []
    whole = broker.answer

    def answer(request: Request) -> Response:
        for part in request.partitions if isinstance(request, ProduceRequest) else ():
            sent.extend((each.producer_id, each.producer_epoch, each.base_sequence) for each in part.batches)
        return whole(request)

    monkeypatch.setattr(broker, "answer", answer)
    ops = produced(broker, history, 4, retries=1, idempotent=True, within_ms=WITHIN_MS)
    assert ["ok", "ok", "info", "ok"] == [op.type.value for op in ops[1::2]]
    assert [(1, 0, 0), (1, 0, 1), (1, 0, 1), (1, 0, 2), (1, 0, 2), (1, 1, 0)] == sent


def test_producer_asks_who_leads_only_after_it_was_told_of_another_leader(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_first(broker, monkeypatch, ProduceRequest, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    ops = produced(broker, history, 4, acks=(1,))
    assert ["ok", "fail", "ok", "ok"] == [op.type.value for op in ops[1::2]]
    assert 2 == len(asked(broker, versions.METADATA))


def test_producer_without_a_leader_sends_nothing_in_its_time_and_goes_on(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.untold = 10**6
    ops = produced(broker, history, 2, leave=Overtime(history, 2, monkeypatch), within_ms=WITHIN_MS)
    assert [OpType.FAIL] * 2 == [op.type for op in ops[1::2]]
    assert {"topic-0: no node names a leader; expected one in time"} == {op.value["error"] for op in ops[1::2]}
    assert [] == asked(broker, versions.PRODUCE)


def test_producer_whose_node_hangs_up_does_not_know_the_outcome_and_connects_again(history: History) -> None:
    """The node names itself as the leader, and hangs up at each Produce."""
    hung_up: list[bytes] = []
    port = [0]

    def answer(frame: bytes) -> bytes | None:
        if int.from_bytes(frame[:2]) != versions.METADATA:
            hung_up.append(frame)
            return None
        return metadata_of(frame, port[0])

    with peer(answer) as address:
        port[0] = int(address.rpartition(":")[2])
        plan = ProducerPlan(name="p1", places=(PLACE,), batch=(1, 1))
        producer = Producer(plan, SEED, process="client-1", history=history, nodes={"A": address})
        producer.run(cast(threading.Event, Leave(history, 2)))
    ends = read_history(history.path)[1::2]
    assert ([OpType.INFO] * 2, 2) == ([op.type for op in ends], len(hung_up))
    assert all("hung up after 0 of 4 bytes" in op.value["error"] for op in ends)


def metadata_of(frame: bytes, port: int) -> bytes:
    """Return the whole answer to a metadata request: this port leads the partition."""
    incoming = decode_request(frame, split_batches=split_produced)
    broker = TinyBroker.__new__(TinyBroker)
    broker.untold, broker.epoch, broker.port = 0, 0, port
    response = broker._metadata()
    assert isinstance(response, MetadataResponse)
    return b"".join(encode_response(incoming, response))


# --- consumers --------------------------------------------------------------------------------------------------
def test_consumer_reads_on_where_it_was(broker: TinyBroker, history: History) -> None:
    sent = [op.value["value"] for op in produced(broker, history, 3) if op.type is OpType.OK]
    first, second = consumed(broker, history, 2)
    assert (OpType.OK, "A", 0, True) == (
        first.type,
        first.value["node"],
        first.value["position"],
        first.value["sought"],
    )
    assert [[at, value] for at, value in enumerate(sent)] == [list(record) for record in first.value["records"]]
    assert (3, 3, [], False) == (
        second.value["position"],
        second.value["high_watermark"],
        list(second.value["records"]),
        second.value.get("sought", False),
    )


def test_consumer_that_is_out_of_range_fails_and_begins_again(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    produced(broker, history, 2)
    fail_first(broker, monkeypatch, FetchRequest, ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
    polls = consumed(broker, history, 3)
    assert [("ok", 0), ("fail", 2), ("ok", 0)] == [(op.type.value, op.value["position"]) for op in polls]
    assert "OFFSET_OUT_OF_RANGE" == polls[1].value["error"]
    assert [True, False, True] == [op.value.get("sought", False) for op in polls]


def test_consumer_speaks_the_version_that_knows_zstd_once_it_is_refused(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: KIP-110: a broker answers an older Fetch with UNSUPPORTED_COMPRESSION_TYPE; ours never does."""
    whole = questions.fetch_each

    def older(connection: Connection, offsets: dict[Place, int], *, version: int, **limits: int) -> Any:
        found = whole(connection, offsets, version=version, **limits)
        refusal = WireErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return found if version == 10 else {place: replace(found[place], error=refusal) for place in found}

    monkeypatch.setattr(questions, "fetch_each", older)
    polls = consumed(broker, history, 3)
    assert ["fail", "ok", "ok"] == [op.type.value for op in polls]
    assert "UNSUPPORTED_COMPRESSION_TYPE" == polls[0].value["error"]
    assert [5, 10, 10] == asked(broker, versions.FETCH)


@pytest.mark.parametrize(("via", "asks"), [(Via.LEADER, 2), (Via.EVERY, 0)])
def test_consumer_asks_who_leads_again_only_if_it_follows_the_leader(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch, via: Via, asks: int
) -> None:
    fail_first(broker, monkeypatch, FetchRequest, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    polls = consumed(broker, history, 3, via=via)
    assert ["fail", "ok", "ok"] == [op.type.value for op in polls]
    assert asks == len(asked(broker, versions.METADATA))


def test_bytes_that_are_no_batch_move_no_position() -> None:
    error, records, next_offset = opened(b"x" * 100, 7)
    assert ([], 7) == (records, next_offset)
    assert error.startswith("records at 7: position 0: ")


# --- threads ----------------------------------------------------------------------------------------------------
CLIENTS = Clients(
    producers=(ProducerPlan(name="p1", places=(PLACE,)), ProducerPlan(name="p2", places=(PLACE,))),
    consumers=(ConsumerPlan(name="c1", places=(PLACE,)),),
)


def client_of(broker: TinyBroker, history: History) -> RawClient:
    return RawClient(history=history, bootstrap=lambda: [*nodes(broker).values()])


def test_consumers_go_on_when_producers_end(broker: TinyBroker, history: History) -> None:
    work = client_of(broker, history).begin_workload(CLIENTS, SEED, nodes=nodes(broker))
    assert until(lambda: len(broker.seen) > 20, limits.CONDITION_WAIT_S_MAX)
    assert (False, False) == (work.produced, work.done)
    work.stop_producing()
    assert until(lambda: work.produced, limits.CONDITION_WAIT_S_MAX)
    sends, polls = len(asked(broker, versions.PRODUCE)), len(asked(broker, versions.FETCH))
    assert until(lambda: len(asked(broker, versions.FETCH)) > polls + 3, limits.CONDITION_WAIT_S_MAX)
    assert (False, sends) == (work.done, len(asked(broker, versions.PRODUCE)))
    work.stop()
    assert until(lambda: work.done, limits.CONDITION_WAIT_S_MAX)
    processes = {op.process for op in read_history(history.path)}
    assert {"client-1", "client-2", "client-3"} == processes


def test_clients_end_when_the_history_is_closed(broker: TinyBroker, history: History) -> None:
    work = client_of(broker, history).begin_workload(CLIENTS, SEED, nodes=nodes(broker))
    assert until(lambda: len(broker.seen) > 20, limits.CONDITION_WAIT_S_MAX)
    history.close()
    assert until(lambda: work.done, limits.CONDITION_WAIT_S_MAX)


def test_client_that_fails_ends_all_and_leaves_no_whole_history(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Producer, "send", broken)
    work = client_of(broker, history).begin_workload(CLIENTS, SEED, nodes=nodes(broker))
    assert until(lambda: work.done, limits.CONDITION_WAIT_S_MAX)
    with pytest.raises(HistoryError, match=r"lacks what was observed after op .*ZeroDivisionError: a bug"):
        history.record("runner", OpType.INFO, Done())
