"""A churner against one broker on the wire: what each answer to a create or a delete proves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from checkers.facts.generations import ABSENT, THERE
from harness.events import CreateTopic, DeleteTopic
from harness.history.file import History, read_history
from harness.model import Op, OpType, events_of
from harness.workload.plan import ChurnPlan
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    MetadataRequest,
    Request,
    Response,
    TopicErrors,
)
from targets.broker.wire import versions
from targets.kafka_family.clients import topics
from targets.kafka_family.clients.churning import NO_CONTROLLER, Churner
from targets.kafka_family.wire.answers import Changed
from targets.kafka_family.wire.errors import ErrorCode as WireErrorCode
from tests.broker.log.batches import TP
from tests.broker.wire.tiny_server import BROKER_ID, TinyBroker, running
from tests.targets.kafka_family.clients.test_workload import Leave, Overtime, asked

pytestmark = pytest.mark.slow

SEED = 3
PLAN = ChurnPlan(name="n1", topic=TP.topic, nodes=("A",), replication=1, every_ms=(0, 1), within_ms=20_000)


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


def churned(
    broker: TinyBroker, history: History, count: int, plan: ChurnPlan = PLAN, leave: Leave | None = None
) -> list[Op]:
    """Let a churner work until so many ops have their outcome; return its ops."""
    nodes = {"A": f"127.0.0.1:{broker.port}"}
    churner = Churner(plan, SEED, process="client-1", history=history, nodes=nodes)
    churner.run(cast(threading.Event, leave or Leave(history, count)))
    return read_history(history.path)


def changes(ops: list[Op]) -> list[tuple[str, OpType, str]]:
    """Return the creates and deletes that ended: f, type and error."""
    both = [*events_of(ops, CreateTopic), *events_of(ops, DeleteTopic)]
    return [
        (op.f, op.type, each.error)
        for op, each in sorted(both, key=lambda one: one[0].index)
        if op.type is not OpType.INVOKE
    ]


def answering(broker: TinyBroker, monkeypatch: pytest.MonkeyPatch, *errors: ErrorCode) -> list[Request]:
    """Answer creates and deletes with these errors, the last one for ever; return all that are asked."""
    seen: list[Request] = []
    left, whole = list(errors), broker.answer

    def answer(request: Request) -> Response:
        if not isinstance(request, CreateTopicsRequest | DeleteTopicsRequest):
            return whole(request)
        seen.append(request)
        return TopicErrors(errors=((TP.topic, left.pop(0) if len(left) > 1 else left[0], "because"),))

    monkeypatch.setattr(broker, "answer", answer)
    return seen


def test_creates_name_the_brokers_by_their_ids_and_batches_go_to_the_leader(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = answering(broker, monkeypatch, ErrorCode.NONE)
    ops = churned(broker, history, 60)
    created = [new for each in seen if isinstance(each, CreateTopicsRequest) for new in each.topics]
    assert {(TP.topic, ((0, (BROKER_ID,)),))} == {(new.topic, new.assignments) for new in created}
    assert {(TP.topic,)} == {each.topics for each in seen if isinstance(each, DeleteTopicsRequest)}
    assert {("create-topic", OpType.OK, ""), ("delete-topic", OpType.OK, "")} == set(changes(ops))
    values = [op.value["value"] for op in ops if op.f == "produce" and op.type is OpType.OK]
    assert values
    assert len(values) == len(set(values)) == broker.log.end_offset
    # Each request is one op, and each op that was invoked has ended.
    assert len(seen) == len(changes(ops))
    assert 2 * len(changes(ops)) == len([op for op in ops if op.f != "produce"])


@pytest.mark.parametrize(
    ("error", "type_", "first"),
    [
        (ErrorCode.TOPIC_ALREADY_EXISTS, OpType.FAIL, THERE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, OpType.FAIL, ABSENT),
        (ErrorCode.REQUEST_TIMED_OUT, OpType.INFO, "REQUEST_TIMED_OUT"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, OpType.INFO, "UNKNOWN_SERVER_ERROR"),
        (ErrorCode.INVALID_REPLICA_ASSIGNMENT, OpType.FAIL, "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_answer_says_whether_it_may_have_happened(
    broker: TinyBroker,
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    *,
    error: ErrorCode,
    type_: OpType,
    first: str,
) -> None:
    seen = answering(broker, monkeypatch, error)
    (found, *_) = changes(churned(broker, history, 1))
    assert (type_, first) == (found[1], found[2].partition(" ")[0])
    assert 1 == len(seen)


def test_controller_is_looked_up_again_once_a_broker_says_that_it_is_none(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Our broker has no such error: any of them writes to ZooKeeper what the controller then sees.
    answering(broker, monkeypatch, ErrorCode.NONE)
    whole, refusals = topics.create, [Changed(error=WireErrorCode.NOT_CONTROLLER)]
    monkeypatch.setattr(topics, "create", lambda *asked: refusals.pop() if refusals else whole(*asked))
    ends = changes(churned(broker, history, 12))
    assert OpType.FAIL is ends[0][1]
    assert ends[0][2].startswith("NOT_CONTROLLER")
    assert {OpType.OK} == {type_ for _, type_, _ in ends[1:]}
    assert len(asked(broker, versions.METADATA)) >= 2


def test_nothing_is_asked_without_a_controller(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = answering(broker, monkeypatch, ErrorCode.NONE)
    broker.untold = 10**6
    ends = changes(churned(broker, history, 3, leave=Overtime(history, 3, monkeypatch)))
    assert {(OpType.FAIL, NO_CONTROLLER)} == {(type_, error) for _, type_, error in ends}
    assert [] == seen


def test_lost_answer_leaves_the_outcome_open_and_the_churner_goes_on(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(broker, monkeypatch, ErrorCode.NONE)
    answer, lost = broker.answer, [True]

    def hangs_up(request: Request) -> Response:
        if lost and not isinstance(request, MetadataRequest):
            lost.pop()
            broker.transports[-1].abort()
        return answer(request)

    monkeypatch.setattr(broker, "answer", hangs_up)
    ends = changes(churned(broker, history, 12))
    assert OpType.INFO is ends[0][1]
    assert {OpType.OK} == {type_ for _, type_, _ in ends[1:]}
