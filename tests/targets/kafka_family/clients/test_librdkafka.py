"""The librdkafka client against one partition on the wire: its requests, and what it records in the history."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from harness import limits
from harness.history.file import History, read_history
from harness.model import Op, OpType, PreconditionError
from targets.broker.core.messages import ErrorCode, ProducePartition, ProduceResult
from targets.broker.wire import versions
from targets.kafka_family.clients import librdkafka
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from tests.broker.log.batches import TP, all_of, digests
from tests.broker.log.batches import offsets as spans
from tests.broker.wire.tiny_server import TinyBroker, running
from tests.workloads.peers import peer

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TinyBroker]:
    """Start a broker with one partition that answers at once."""
    with running(tmp_path / "data") as served:
        yield served


@pytest.fixture
def client(broker: TinyBroker, tmp_path: Path) -> Iterator[LibrdkafkaClient]:
    """Return a client with its own history."""
    history = History(tmp_path / "history.jsonl")
    yield LibrdkafkaClient(history=history, bootstrap=lambda: [f"127.0.0.1:{broker.port}"])
    history.close()


def ops(client: LibrdkafkaClient, type_: OpType) -> list[Op]:
    """Return the ops of this type in the history."""
    return [op for op in read_history(client.history.path) if op.type is type_]


def produce(client: LibrdkafkaClient, *values: str, acks: int = -1, **wishes: object) -> list[int]:
    """Produce to the broker's only partition."""
    return client.produce(TP.topic, TP.partition, "m1", values, acks=acks, **wishes)  # type: ignore[arg-type]


def test_records_of_one_call_are_one_batch_and_an_operation_each(
    broker: TinyBroker, client: LibrdkafkaClient
) -> None:
    assert [0, 1, 2] == produce(client, "a", "b", "c")
    assert [(0, 2)] == spans(all_of(broker.log))
    about = {"topic": TP.topic, "partition": 0, "name": "m1", "acks": -1, "codec": "none"}
    asked = [dict(op.value) for op in ops(client, OpType.INVOKE)]
    assert digests(all_of(broker.log)) == [each.pop("digest") for each in asked]
    assert [about | {"value": value} for value in "abc"] == asked
    assert [about | {"value": value, "offset": offset} for offset, value in enumerate("abc")] == [
        op.value for op in ops(client, OpType.OK)
    ]


def test_records_sent_singly_are_a_batch_each(broker: TinyBroker, client: LibrdkafkaClient) -> None:
    assert [0, 1, 2] == produce(client, "a", "b", "c", singly=True)
    assert [(0, 0), (1, 1), (2, 2)] == spans(all_of(broker.log))


def test_record_may_have_less_time_than_batches_wait_for(broker: TinyBroker, client: LibrdkafkaClient) -> None:
    """`refused for=1500ms` gives less: librdkafka then refused to be made, and the run was unknown."""
    timeout_ms = librdkafka.LINGER_MS // 2
    assert [0, 1, 2] == produce(client, "a", "b", "c", timeout_s=timeout_ms / 1000)
    assert [(0, 2)] == spans(all_of(broker.log))


def test_acks_0_tells_no_offsets(broker: TinyBroker, client: LibrdkafkaClient) -> None:
    assert [] == produce(client, "a", "b", acks=0)
    assert [None, None] == [op.value.get("offset") for op in ops(client, OpType.OK)]


def test_every_call_is_a_process_of_its_own(client: LibrdkafkaClient) -> None:
    produce(client, "a")
    produce(client, "b")
    client.read_all(TP.topic, TP.partition)
    assert ["client-1", "client-2", "client-3"] == [op.process for op in ops(client, OpType.OK)]


def test_reading_gives_every_record_up_to_the_high_watermark(client: LibrdkafkaClient) -> None:
    produce(client, "a", "b")
    assert [(0, "a"), (1, "b")] == client.read_all(TP.topic, TP.partition)
    read = ops(client, OpType.OK)[-1]
    assert ([[0, "a"], [1, "b"]], 2) == (read.value["records"], read.value["high_watermark"])


def test_reading_asks_again_while_who_is_asked_does_not_know_yet_who_leads(
    broker: TinyBroker, client: LibrdkafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after an election metadata may be older than the leader; librdkafka passes the error to its caller."""
    produce(client, "a", "b")
    broker.unaware = 5
    assert [(0, "a"), (1, "b")] == client.read_all(TP.topic, TP.partition)
    assert broker.unaware < 0
    monkeypatch.setattr(limits, "CLIENT_OPERATION_S_MAX", 1.0)
    broker.unaware = 1_000_000
    with pytest.raises(PreconditionError, match=r"read topic-0: .*NOT_LEADER_FOR_PARTITION"):
        client.read_all(TP.topic, TP.partition)


@pytest.mark.parametrize(
    "refusal",
    [
        (ErrorCode.INVALID_REQUIRED_ACKS, 1, OpType.FAIL),
        (ErrorCode.CORRUPT_MESSAGE, 1, OpType.FAIL),
        (ErrorCode.INVALID_RECORD, 1, OpType.FAIL),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, OpType.INFO),
        (ErrorCode.REQUEST_TIMED_OUT, -1, OpType.INFO),
        (ErrorCode.NOT_ENOUGH_REPLICAS, -1, OpType.INFO),
    ],
)
def test_refused_record_failed_only_where_it_surely_was_not_appended_and_is_never_tried_again(
    broker: TinyBroker,
    client: LibrdkafkaClient,
    monkeypatch: pytest.MonkeyPatch,
    refusal: tuple[ErrorCode, int, OpType],
) -> None:
    error, acks, type_ = refusal
    monkeypatch.setattr(broker, "_produce", lambda asked: ProduceResult(tp=asked.tp, error=error))
    with pytest.raises(PreconditionError, match=f"produce m1 acks={acks}: 0 of 1 records acknowledged"):
        produce(client, "a", acks=acks)
    (refused,) = ops(client, type_)
    assert KafkaError(error).name() == refused.value["error"]
    assert 1 == [key for key, _ in broker.seen].count(versions.PRODUCE)


def test_record_that_was_sent_again_by_itself_may_have_been_appended_by_the_first_try(
    broker: TinyBroker, client: LibrdkafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    With acks=all "not the leader" can also follow an append, so the next leader's answer proves nothing.

    Source: Apache Kafka, DelayedProduce.tryComplete, case B; librdkafka, rd_kafka_handle_Produce_error.
    """
    append = broker._produce
    errors = iter((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS))

    def lead_no_more(asked: ProducePartition) -> ProduceResult:
        error = next(errors)
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            append(asked)
        return ProduceResult(tp=asked.tp, error=error)

    monkeypatch.setattr(broker, "_produce", lead_no_more)
    with pytest.raises(PreconditionError, match=r"0 of 1 records acknowledged; .*NOT_ENOUGH_REPLICAS"):
        produce(client, "a")
    assert 2 == [key for key, _ in broker.seen].count(versions.PRODUCE)
    assert [(0, 0)] == spans(all_of(broker.log))
    assert ([], 1) == (ops(client, OpType.FAIL), len(ops(client, OpType.INFO)))


def test_reading_waits_for_the_library_before_it_asks_again(
    client: LibrdkafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    refusals = [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE]

    class Refused:
        def __init__(self, _config: object) -> None:
            pass

        def get_watermark_offsets(self, _place: object, timeout: float) -> tuple[int, int]:
            calls.append("ask")
            if refusals:
                raise KafkaException(KafkaError(refusals.pop()))
            return 0, 0

        def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
            assert timeout > 0
            return [TopicPartition(each.topic, each.partition, 0) for each in asked]

        def assign(self, _places: object) -> None:
            pass

        def poll(self, timeout: float) -> None:
            calls.append("wait" if timeout > 0 else "poll")

        def close(self) -> None:
            pass

    monkeypatch.setattr(librdkafka, "Consumer", Refused)
    assert [] == client.read_all(TP.topic, TP.partition)
    assert ["ask", "wait", "ask", "wait", "ask"] == calls


def test_topic_that_cannot_be_made_is_told(client: LibrdkafkaClient) -> None:
    with pytest.raises(PreconditionError, match=r"create topic topic on \[5\]: .*TOPIC_ALREADY_EXISTS"):
        client.create_topic(TP.topic, [5])


def test_without_a_node_there_is_nothing_to_connect_to(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    client = LibrdkafkaClient(history=history, bootstrap=lambda: [])
    with pytest.raises(PreconditionError, match="no node runs"):
        produce(client, "a")
    history.close()


def test_record_and_read_without_an_answer_are_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLIENT_OPERATION_S_MAX", 0.3)
    monkeypatch.setattr(librdkafka, "LINGER_MS", 10)
    history = History(tmp_path / "history.jsonl")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = LibrdkafkaClient(history=history, bootstrap=lambda: [f"127.0.0.1:{silent.getsockname()[1]}"])
        with pytest.raises(PreconditionError, match="0 of 1 records acknowledged"):
            produce(client, "a")
        with pytest.raises(PreconditionError, match="read topic-0: "):
            client.read_all(TP.topic, TP.partition)
    assert ["produce"] == [op.f for op in ops(client, OpType.INFO)]
    assert ["read"] == [op.f for op in ops(client, OpType.FAIL)]
    history.close()


def test_controller_is_asked_for_until_a_node_names_it(broker: TinyBroker, client: LibrdkafkaClient) -> None:
    """A broker serves before it knows the controller, and librdkafka would not ask it again."""
    broker.untold = 3
    with pytest.raises(PreconditionError, match="TOPIC_ALREADY_EXISTS"):
        client.create_topic(TP.topic, [5])
    assert 0 == broker.untold


def test_topic_without_a_controller_to_ask_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_OPERATION_S_MAX", 0.3)
    history = History(tmp_path / "history.jsonl")
    with peer(lambda _: None) as dumb:
        client = LibrdkafkaClient(history=history, bootstrap=lambda: [dumb])
        with pytest.raises(PreconditionError, match=r"create topic t on \[1, 2\]: no node names a controller"):
            client.create_topic("t", [1, 2])
    history.close()


def test_topic_that_nobody_makes_in_time_is_told_of(
    client: LibrdkafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent:
        def __init__(self, _config: object) -> None:
            pass

        def list_topics(self, timeout: float) -> SimpleNamespace:
            return SimpleNamespace(controller_id=1, brokers={1: "C"})

        def create_topics(self, topics: Sequence[NewTopic], **_limits: object) -> dict[str, Future[None]]:
            return {topic.topic: Future() for topic in topics}

    monkeypatch.setattr(librdkafka, "AdminClient", Silent)
    monkeypatch.setattr(limits, "CLIENT_OPERATION_S_MAX", 0.01)
    with pytest.raises(PreconditionError, match=r"create topic t on \[1, 2\]: no answer within 0.01 s"):
        client.create_topic("t", [1, 2])
