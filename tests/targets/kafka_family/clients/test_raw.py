"""The client without retries against one partition on the wire: its requests, and what the history records."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import limits
from harness.history.file import History, read_history
from harness.model import Op, OpType, PreconditionError
from targets.broker.core.messages import (
    CreateTopicsRequest,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ProduceResult,
    Request,
    Response,
)
from targets.broker.wire import versions
from targets.kafka_family.clients import questions
from targets.kafka_family.clients.batches import CODECS
from targets.kafka_family.clients.librdkafka import LibrdkafkaClient
from targets.kafka_family.clients.raw import RawClient
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
def history(tmp_path: Path) -> Iterator[History]:
    """Open a history for this test alone."""
    made = History(tmp_path / "history.jsonl")
    yield made
    made.close()


@pytest.fixture
def client(broker: TinyBroker, history: History) -> RawClient:
    """Return a client of that broker."""
    nodes = [f"127.0.0.1:{broker.port}"]
    return RawClient(history=history, bootstrap=lambda: nodes, timeout_s=limits.CONDITION_WAIT_S_MAX)


def ops(history: History, *types: OpType) -> list[Op]:
    """Return the ops of these types in the history."""
    return [op for op in read_history(history.path) if op.type in types]


def produce(client: RawClient, *values: str, acks: int = -1, **wishes: object) -> list[int]:
    """Produce to the broker's only partition."""
    return client.produce(TP.topic, TP.partition, "m1", values, acks=acks, **wishes)  # type: ignore[arg-type]


def asked(broker: TinyBroker, key: int) -> int:
    """Return how many requests with this API key the broker received."""
    return [seen for seen, _ in broker.seen].count(key)


# --- what is written and read -----------------------------------------------------------------------------------
@pytest.mark.parametrize("codec", CODECS)
def test_records_of_one_call_are_one_batch_and_read_back_under_every_codec(
    broker: TinyBroker, client: RawClient, codec: str
) -> None:
    values = [f"m1.{number}" for number in range(20)]
    assert list(range(20)) == produce(client, *values, codec=codec)
    assert [(0, 19)] == spans(all_of(broker.log))
    assert list(enumerate(values)) == client.read_all(TP.topic, TP.partition)


def test_records_sent_singly_are_a_batch_each(broker: TinyBroker, client: RawClient) -> None:
    assert [0, 1, 2] == produce(client, "a", "b", "c", singly=True)
    assert [(0, 0), (1, 1), (2, 2)] == spans(all_of(broker.log))


def test_history_is_the_same_as_librdkafkas(tmp_path: Path) -> None:
    """A checker must not be able to tell the two clients apart, but by the timestamp, which the raw one omits."""
    told: list[list[tuple[object, ...]]] = []
    for number, kind in enumerate((RawClient, LibrdkafkaClient)):
        with running(tmp_path / str(number)) as fresh:
            path = tmp_path / f"{number}.jsonl"
            of_kind = History(path)
            client = kind(history=of_kind, bootstrap=lambda port=fresh.port: [f"127.0.0.1:{port}"])
            client.produce(TP.topic, 0, "m1", ["a", "b"], acks=-1, codec="gzip")
            client.produce(TP.topic, 0, "m2", ["c", "d"], acks=1, singly=True)
            client.produce(TP.topic, 0, "m3", ["e"], acks=0)
            client.read_all(TP.topic, 0)
            of_kind.close()
            told.append(
                [
                    (op.source, op.process, op.type, op.f, {**op.value, "digest": "digest" in op.value})
                    for op in read_history(path)
                ]
            )
    raw, other = told
    assert other == raw


def test_digest_of_what_is_sent_is_that_of_the_log(
    broker: TinyBroker, client: RawClient, history: History
) -> None:
    produce(client, "a", "b")
    assert digests(all_of(broker.log)) == [op.value["digest"] for op in ops(history, OpType.INVOKE)]


def test_acks_0_waits_for_nobody(client: RawClient, history: History) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert [] == produce(client, "a", acks=0, via=f"127.0.0.1:{silent.getsockname()[1]}")
    assert [None] == [op.value.get("offset") for op in ops(history, OpType.OK)]


def test_reading_goes_on_to_the_high_watermark_over_many_fetches(
    broker: TinyBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(client, *(str(number) for number in range(30)), singly=True)
    read = broker.log.read
    monkeypatch.setattr(broker.log, "read", lambda offset, end, _: read(offset, end, 200))
    assert [(number, str(number)) for number in range(30)] == client.read_all(TP.topic, TP.partition)
    assert asked(broker, versions.FETCH) > 5


def test_nothing_beyond_the_first_answers_high_watermark_is_read(
    broker: TinyBroker, client: RawClient, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker returns the batch that spans the high watermark whole; a consumer may read only its beginning."""
    produce(client, "a", "b", "c")
    whole = broker.answer

    def lower(request: Request) -> Response:
        response = whole(request)
        if isinstance(response, FetchResponse):
            (result,) = response.results
            fewer = FetchResult(tp=TP, error=result.error, high_watermark=2, batches=result.batches)
            return FetchResponse(results=(fewer,))
        return response

    monkeypatch.setattr(broker, "answer", lower)
    assert [(0, "a"), (1, "b")] == client.read_all(TP.topic, TP.partition)
    (read,) = [op for op in ops(history, OpType.OK) if op.f == "read"]
    assert 2 == read.value["high_watermark"]


def test_empty_partition_reads_as_nothing(client: RawClient) -> None:
    assert [] == client.read_all(TP.topic, TP.partition)


# --- what is not acknowledged -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "refusal",
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, -1, OpType.FAIL),
        (ErrorCode.INVALID_REQUIRED_ACKS, 1, OpType.FAIL),
        (ErrorCode.CORRUPT_MESSAGE, -1, OpType.FAIL),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, OpType.FAIL),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, OpType.INFO),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1, OpType.FAIL),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, OpType.INFO),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, OpType.INFO),
        (ErrorCode.REQUEST_TIMED_OUT, -1, OpType.INFO),
        (ErrorCode.KAFKA_STORAGE_ERROR, 1, OpType.INFO),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 1, OpType.INFO),
    ],
)
def test_refused_record_failed_only_where_it_surely_was_not_appended_and_is_never_sent_again(
    broker: TinyBroker,
    client: RawClient,
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    refusal: tuple[ErrorCode, int, OpType],
) -> None:
    error, acks, type_ = refusal
    monkeypatch.setattr(broker, "_produce", lambda given: ProduceResult(tp=given.tp, error=error))
    with pytest.raises(PreconditionError, match=f"produce m1 acks={acks}: 0 of 2 records acknowledged; "):
        produce(client, "a", "b", acks=acks)
    assert [type_, type_] == [op.type for op in ops(history, OpType.FAIL, OpType.INFO)]
    assert {error} <= {ErrorCode[op.value["error"]] for op in ops(history, type_)}
    assert 1 == asked(broker, versions.PRODUCE)


def test_record_whose_answer_does_not_come_may_have_been_appended(client: RawClient, history: History) -> None:
    with peer(lambda _: None) as address, pytest.raises(PreconditionError, match="hung up"):
        produce(client, "a", via=address)
    assert ["produce"] == [op.f for op in ops(history, OpType.INFO)]


def test_record_that_found_nobody_to_be_sent_to_surely_was_not(history: History) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        gone = f"127.0.0.1:{free.getsockname()[1]}"
    for bootstrap, via in (([], ""), ([gone], ""), ([], gone)):
        client = RawClient(history=history, bootstrap=lambda nodes=bootstrap: nodes, timeout_s=0.2)
        with pytest.raises(PreconditionError, match=r"0 of 1 records acknowledged; .*expected"):
            produce(client, "a", via=via)
    assert ["produce"] * 3 == [op.f for op in ops(history, OpType.FAIL)]
    assert [] == ops(history, OpType.INFO)


def test_no_record_is_sent_after_one_that_was_not_acknowledged(
    broker: TinyBroker, client: RawClient, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = broker._produce
    errors = iter((ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT))

    def second_fails(given) -> ProduceResult:  # type: ignore[no-untyped-def]
        error = next(errors)
        return ProduceResult(tp=given.tp, error=error) if error else real(given)

    monkeypatch.setattr(broker, "_produce", second_fails)
    with pytest.raises(PreconditionError, match="1 of 4 records acknowledged; REQUEST_TIMED_OUT"):
        produce(client, "a", "b", "c", "d", singly=True)
    assert ["a", "b"] == [op.value["value"] for op in ops(history, OpType.INVOKE)]
    assert (["a"], ["b"]) == tuple(
        [op.value["value"] for op in ops(history, type_)] for type_ in (OpType.OK, OpType.INFO)
    )


# --- which node is asked ----------------------------------------------------------------------------------------
def test_record_goes_to_the_node_that_is_named_whoever_leads(
    broker: TinyBroker, client: RawClient, tmp_path: Path
) -> None:
    with running(tmp_path / "zombie") as zombie:
        assert [0] == produce(client, "a", acks=1, via=f"127.0.0.1:{zombie.port}")
        assert ([(0, 0)], []) == (spans(all_of(zombie.log)), spans(all_of(broker.log)))
        assert [(0, "a")] == client.read_all(TP.topic, TP.partition, via=f"127.0.0.1:{zombie.port}")
    assert [] == client.read_all(TP.topic, TP.partition)


def test_leader_is_asked_for_until_there_is_one(broker: TinyBroker, client: RawClient) -> None:
    broker.untold = 3
    assert [0] == produce(client, "a")
    assert (4, 1) == (asked(broker, versions.METADATA), asked(broker, versions.PRODUCE))


def test_node_that_does_not_answer_is_passed_over(broker: TinyBroker, history: History) -> None:
    with peer(lambda _: None) as dumb:
        client = RawClient(history=history, bootstrap=lambda: [dumb, f"127.0.0.1:{broker.port}"])
        assert [0] == produce(client, "a")


def test_read_goes_on_when_somebody_else_leads_and_reads_nothing_twice(
    broker: TinyBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(client, "a", "b", "c", singly=True)
    whole, read, turns = broker.answer, broker.log.read, iter(range(100))

    def deposed(request: Request) -> Response:
        if isinstance(request, FetchRequest) and next(turns) == 1:
            return FetchResponse(results=(FetchResult(tp=TP, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),))
        return whole(request)

    monkeypatch.setattr(broker, "answer", deposed)
    monkeypatch.setattr(broker.log, "read", lambda offset, end, _: read(offset, end, 1))
    assert [(0, "a"), (1, "b"), (2, "c")] == client.read_all(TP.topic, TP.partition)
    assert 4 == asked(broker, versions.FETCH)


def test_read_begins_anew_where_the_log_starts_once_what_it_reads_is_deleted(
    broker: TinyBroker, client: RawClient, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes twice: before the first answer, and when the read has come to offset 2."""
    produce(client, "a", "b", "c", "d", singly=True)
    whole, read, turns, starts = broker.answer, broker.log.read, iter(range(100)), iter([1, 3])

    def deleted(request: Request) -> Response:
        if isinstance(request, FetchRequest) and next(turns) in (0, 2):
            return FetchResponse(results=(FetchResult(tp=TP, error=ErrorCode.OFFSET_OUT_OF_RANGE),))
        return whole(request)

    monkeypatch.setattr(broker, "answer", deleted)
    monkeypatch.setattr(broker.log, "read", lambda offset, end, _: read(offset, end, 1))
    monkeypatch.setattr(questions, "earliest", lambda *_: next(starts))
    assert [(3, "d")] == client.read_all(TP.topic, TP.partition)
    (done,) = [op for op in ops(history, OpType.OK) if op.f == "read"]
    assert (3, [[3, "d"]]) == (done.value["start"], done.value["records"])


def test_read_that_cannot_be_is_a_failed_one(
    broker: TinyBroker, client: RawClient, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = FetchResponse(results=(FetchResult(tp=TP, error=ErrorCode.OFFSET_OUT_OF_RANGE),))
    whole = broker.answer
    monkeypatch.setattr(broker, "answer", lambda r: refused if isinstance(r, FetchRequest) else whole(r))
    with pytest.raises(PreconditionError, match=r"read topic-0: .*OFFSET_OUT_OF_RANGE at 0"):
        client.read_all(TP.topic, TP.partition)
    assert ["read"] == [op.f for op in ops(history, OpType.FAIL)]


def test_read_that_comes_no_further_in_time_says_how_far_it_came(
    broker: TinyBroker, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens when the first answer came from a leader whose last records are truncated afterwards."""
    client = RawClient(history=history, bootstrap=lambda: [f"127.0.0.1:{broker.port}"], timeout_s=0.5)
    produce(client, "a")
    whole = broker.answer

    def higher(request: Request) -> Response:
        response = whole(request)
        if isinstance(response, FetchResponse):
            batches = response.results[0].batches
            return FetchResponse(
                results=(FetchResult(tp=TP, error=ErrorCode.NONE, high_watermark=3, batches=batches),)
            )
        return response

    monkeypatch.setattr(broker, "answer", higher)
    with pytest.raises(PreconditionError, match="came to 1 of 3"):
        client.read_all(TP.topic, TP.partition)
    (failed,) = ops(history, OpType.FAIL)
    assert (1, 3) == (failed.value["position"], failed.value["high_watermark"])


# --- topics -----------------------------------------------------------------------------------------------------
def test_topic_that_cannot_be_made_is_told(client: RawClient) -> None:
    with pytest.raises(PreconditionError, match=r"create topic topic on \[5\]: TOPIC_ALREADY_EXISTS, there"):
        client.create_topic(TP.topic, [5])


def test_topic_of_several_partitions_is_asked_for_with_the_brokers_of_each(
    broker: TinyBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []
    whole = broker.answer
    monkeypatch.setattr(broker, "answer", lambda request: asked.append(request) or whole(request))
    with pytest.raises(PreconditionError, match=r"create topic topic on \[5\], \[5, 6\]: TOPIC_ALREADY_EXISTS"):
        client.create_topic(TP.topic, [5], [5, 6])
    (created,) = (request for request in asked if isinstance(request, CreateTopicsRequest))
    assert [((0, (5,)), (1, (5, 6)))] == [new.assignments for new in created.topics]


def test_topic_without_a_controller_to_ask_is_told(history: History) -> None:
    client = RawClient(history=history, bootstrap=lambda: [], timeout_s=0.1)
    with pytest.raises(PreconditionError, match=r"create topic topic on \[5\]: no node runs"):
        client.create_topic(TP.topic, [5])


@pytest.mark.parametrize(("codec", "version"), [("lz4", 3), ("zstd", 7)])
def test_producer_speaks_the_oldest_version_that_knows_its_codec(
    broker: TinyBroker, client: RawClient, codec: str, version: int
) -> None:
    """Source: KIP-110: zstd needs Produce 7; releases before it know no newer one than 5."""
    produce(client, "a", codec=codec)
    assert {(versions.METADATA, 4), (versions.PRODUCE, version)} == set(broker.seen)
