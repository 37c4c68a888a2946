"""Requests in one line each, answers without their wrapping, and brokers that lead the only partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Effect, Send
from targets.broker.core.messages import (
    Batch,
    EpochAnswer,
    EpochQuestion,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderAndIsr,
    LeaderAndIsrRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from targets.broker.core.rules import Rules
from targets.broker.core.zookeeper import BROKER_IDS, CONTROLLER, CONTROLLER_EPOCH, leader_and_isr_path, topic_path
from tests.broker.core.bench import TP, Bench, answers, batch, log_of, recovery
from tests.broker.core.memory import MemoryZk

ISR_STATE = leader_and_isr_path(TP)
LAG_MS = 30_000
THREE = (1, 2, 3)
STRANGER = 99  # the session of a controller outside these tests' brokers


def produce(*batches: Batch, acks: int = 1, timeout_ms: int = 30_000, tp: TopicPartition = TP) -> ProduceRequest:
    """Return a produce request for one partition; without batches, it has one batch of one record."""
    part = ProducePartition(tp=tp, batches=batches or (batch(),))
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, partitions=(part,))


def fetch(
    offset: int,
    *,
    replica: int = -1,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1_000_000,
    epoch: int = -1,
    tps: Sequence[TopicPartition] = (TP,),
) -> FetchRequest:
    """Return a fetch at one offset of each partition; replica -1 is a consumer, `epoch` its leader epoch."""
    parts = tuple(
        FetchPartition(tp=tp, fetch_offset=offset, max_bytes=max_bytes, current_leader_epoch=epoch) for tp in tps
    )
    return FetchRequest(
        replica_id=replica, max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, partitions=parts
    )


def epoch_question(epoch: int, tp: TopicPartition = TP, *, current: int = -1) -> OffsetForLeaderEpochRequest:
    """Return a request for the end offset of an epoch; `current` is the asker's leader epoch."""
    question = EpochQuestion(tp=tp, leader_epoch=epoch, current_leader_epoch=current)
    return OffsetForLeaderEpochRequest(questions=(question,))


def list_offsets(
    timestamp: int, replica: int = -1, tp: TopicPartition = TP, *, current: int = -1
) -> ListOffsetsRequest:
    """Return a request for the offset at a timestamp: -1 the latest, -2 the earliest."""
    part = ListOffsetsPartition(tp=tp, timestamp=timestamp, current_leader_epoch=current)
    return ListOffsetsRequest(replica_id=replica, partitions=(part,))


def produced(effects: Sequence[Effect]) -> list[tuple[ErrorCode, int]]:
    """Return error and base offset of every produce result answered."""
    found = [answer for answer in answers(effects) if isinstance(answer, ProduceResponse)]
    return [(result.error, result.base_offset) for answer in found for result in answer.results]


def fetched(effects: Sequence[Effect]) -> list[FetchResult]:
    """Return every fetch result answered."""
    found = [answer for answer in answers(effects) if isinstance(answer, FetchResponse)]
    return [result for answer in found for result in answer.results]


def read(effects: Sequence[Effect]) -> list[tuple[ErrorCode, list[int], int]]:
    """Return error, base offsets of the batches, and high watermark of every fetch result answered."""
    return [(r.error, [item.base_offset for item in r.batches], r.high_watermark) for r in fetched(effects)]


def epoch_ends(effects: Sequence[Effect]) -> list[tuple[ErrorCode, int, int]]:
    """Return error, epoch and end offset of every epoch answered."""
    found = [answer for answer in answers(effects) if isinstance(answer, OffsetForLeaderEpochResponse)]
    return [(item.error, item.leader_epoch, item.end_offset) for answer in found for item in answer.answers]


def listed(effects: Sequence[Effect]) -> list[tuple[ErrorCode, int]]:
    """Return error and offset of every ListOffsets result answered."""
    found = [answer for answer in answers(effects) if isinstance(answer, ListOffsetsResponse)]
    return [(result.error, result.offset) for answer in found for result in answer.results]


def ends_at(end: int, *, epoch: int = -1, error: ErrorCode = ErrorCode.NONE) -> OffsetForLeaderEpochResponse:
    """Return a leader's answer to a follower: the end offset of an epoch."""
    answer = EpochAnswer(tp=TP, error=error, leader_epoch=epoch, end_offset=end)
    return OffsetForLeaderEpochResponse(answers=(answer,))


def fetch_answer(*batches: Batch, high_watermark: int = 0, error: ErrorCode = ErrorCode.NONE) -> FetchResponse:
    """Return a leader's answer to a follower's fetch."""
    result = FetchResult(tp=TP, error=error, high_watermark=high_watermark, batches=batches)
    return FetchResponse(results=(result,))


def given(
    tp: TopicPartition, *batches: Batch, high_watermark: int = 0, error: ErrorCode = ErrorCode.NONE
) -> FetchResult:
    """Return one partition's part of such an answer."""
    return FetchResult(tp=tp, error=error, high_watermark=high_watermark, batches=batches)


def follow_all(tps: Sequence[TopicPartition], *, epoch: int, leader: int = 2) -> LeaderAndIsrRequest:
    """Return the controller's command to brokers 1 and 2 to follow one leader in all of these partitions."""
    commands = [
        LeaderAndIsr(tp=tp, leader=leader, leader_epoch=epoch, isr=(1, 2), zk_version=0, replicas=(1, 2))
        for tp in tps
    ]
    return LeaderAndIsrRequest(
        controller_id=9, controller_epoch=1, ack_timeout_ms=1, is_init=False, partitions=tuple(commands)
    )


def asked(sends: Sequence[Send]) -> list[int]:
    """Return the epochs that a follower asked for, of every partition."""
    found = [send.request for send in sends]
    requests = [request for request in found if isinstance(request, OffsetForLeaderEpochRequest)]
    return [question.leader_epoch for request in requests for question in request.questions]


def fetched_at(sends: Sequence[Send]) -> list[int]:
    """Return the offsets that a follower fetched from, of every partition."""
    found = [send.request for send in sends]
    return [part.fetch_offset for ask in found if isinstance(ask, FetchRequest) for part in ask.partitions]


def named(send: Send) -> list[TopicPartition]:
    """Return the partitions that a follower's request names."""
    request = send.request
    if isinstance(request, OffsetForLeaderEpochRequest):
        return [question.tp for question in request.questions]
    assert isinstance(request, FetchRequest | ListOffsetsRequest), f"{request!r} is no follower's"
    return [part.tp for part in request.partitions]


def latest_is(offset: int) -> ListOffsetsResponse:
    """Return a leader's answer to a follower's ListOffsets request, for the latest or earliest offset."""
    return ListOffsetsResponse(results=(ListOffsetsResult(tp=TP, error=ErrorCode.NONE, offset=offset),))


def leading(
    rules: Rules | str = "kip101",
    *spans: tuple[int, int],
    epoch: int = 0,
    isr: Sequence[int] = (1, 2),
    replicas: Sequence[int] = (1, 2),
    high_watermark: int = 0,
    **settings: Any,
) -> Bench:
    """Return broker 1 as leader of a log of (leader epoch, records) batches; it has no ZooKeeper."""
    log = log_of(*spans)
    bench = Bench(rules, **settings)
    bench.start((log, recovery(log, high_watermark=high_watermark)))
    bench.command(leader=1, epoch=epoch, isr=isr, replicas=replicas)
    return bench


def registered(
    rules: Rules | str = "kip101",
    *spans: tuple[int, int],
    replicas: Sequence[int] = (1, 2),
    high_watermark: int = 0,
    session: int = 7,
    **settings: Any,
) -> Bench:
    """Return broker 1 in a ZooKeeper where another broker is controller and the partition has no state yet."""
    log = log_of(*spans)
    bench = Bench(rules, zk=occupied(replicas), **settings)
    bench.start((log, recovery(log, high_watermark=high_watermark)), session=session)
    return bench


def occupied(replicas: Sequence[int] = (1, 2)) -> MemoryZk:
    """Return a ZooKeeper with the topic's assignment and another broker as controller."""
    zk = MemoryZk()
    zk.put(BROKER_IDS)
    zk.put(topic_path(TP.topic), encode_assignment({TP.partition: tuple(replicas)}))
    zk.put(CONTROLLER_EPOCH, b"1")
    zk.put(CONTROLLER, b"9", owner=STRANGER)
    return zk


def lead(
    bench: Bench, *, epoch: int = 0, isr: Sequence[int] = (1, 2), replicas: Sequence[int] = (1, 2)
) -> list[Effect]:
    """Write to ZooKeeper, as the other controller, that broker 1 leads, then send it the command."""
    version = bench.zk.put_state(1, epoch, isr)
    return bench.command(leader=1, epoch=epoch, isr=isr, replicas=replicas, zk_version=version)


def leader_of(
    records: int,
    *,
    isr: tuple[int, ...],
    epoch: int = 5,
    rules: Rules | str = "kip101",
    lag_ms: int = LAG_MS,
    **settings: Any,
) -> Bench:
    """Return broker 1 as leader of a log of so many one-record batches, at 10 seconds past the clock's zero."""
    bench = registered(rules, *[(0, 1)] * records, replicas=THREE, replica_lag_ms_max=lag_ms, **settings)
    bench.now_ns = 10_000_000_000
    lead(bench, epoch=epoch, isr=isr, replicas=THREE)
    return bench


def isr_of(bench: Bench) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ISR in the leader's state and in ZooKeeper."""
    return bench.replica.isr, bench.zk.state().isr
