"""A topic that is deleted and created again: what was meant for its predecessor has no effect on it."""

from __future__ import annotations

import pytest

from targets.broker.core.events import Flushed, Send, WriteHighWatermarks, ZkAnswered
from targets.broker.core.messages import (
    FetchRequest,
    OffsetForLeaderEpochRequest,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import ZkDone
from tests.broker.core.asks import ends_at, fetch_answer, leading, produce, registered
from tests.broker.core.bench import TP, Bench, batch, log_of, recovery

RETRY_MS = 1_000


def delete(bench: Bench) -> None:
    """Deliver the controller's StopReplica of the only partition."""
    bench.request(
        StopReplicaRequest(controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=(StopReplica(tp=TP),))
    )
    assert {} == bench.broker.state.replicas


def fetches(bench: Bench) -> list[Send]:
    return [send for send in bench.sent() if isinstance(send.request, FetchRequest)]


def following(protocol: str) -> Bench:
    """Return broker 1 as a follower of 2 whose first fetch is on its way."""
    bench = Bench(protocol)
    bench.start()
    bench.command(leader=2, epoch=0)
    if isinstance(bench.sent()[-1].request, OffsetForLeaderEpochRequest):
        bench.answer(ends_at(0, epoch=0))
    assert [0] == [part.fetch_offset for part in fetches(bench)[-1].request.partitions]  # type: ignore[union-attr]
    return bench


def again(bench: Bench, *, leader: int = 2) -> None:
    """Deliver the command that creates the topic again."""
    bench.command(leader=leader, epoch=0)
    if leader != 1 and isinstance(bench.sent()[-1].request, OffsetForLeaderEpochRequest):
        bench.answer(ends_at(0, epoch=0))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fetch_answer_of_the_deleted_topic_is_not_appended_to_the_new_one(protocol: str) -> None:
    bench = following(protocol)
    old = fetches(bench)[-1]
    delete(bench)
    again(bench)
    new = fetches(bench)[-1]
    bench.answer(fetch_answer(batch(3, epoch=0), high_watermark=3), to=old)
    assert (0, 0, new) == (bench.replica.log.end_offset, bench.replica.high_watermark, fetches(bench)[-1])
    bench.answer(fetch_answer(batch(1, epoch=0), high_watermark=0), to=new)
    assert 1 == bench.replica.log.end_offset


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_retry_of_the_deleted_topic_starts_no_second_fetch_of_the_new_one(protocol: str) -> None:
    """With two fetches in flight from one offset, the second answer does not fit the log, which is then stuck."""
    bench = following(protocol)
    bench.answer(None)
    delete(bench)
    again(bench)
    bench.pass_ms(RETRY_MS)
    bench.pass_ms(RETRY_MS)
    assert [0, 0] == [part.fetch_offset for send in fetches(bench) for part in send.request.partitions]  # type: ignore[union-attr]


@pytest.mark.parametrize("protocol", [name for name, rules in PROTOCOLS.items() if rules.epochs])
def test_truncation_answer_of_the_deleted_topic_does_not_truncate_the_new_one(protocol: str) -> None:
    """Also where an answer of an older epoch counts (KAFKA-7786), that of a deleted topic does not."""
    bench = Bench(protocol)
    log = log_of((0, 2))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=0)
    old = bench.sent()[-1]
    assert isinstance(old.request, OffsetForLeaderEpochRequest)
    delete(bench)
    again(bench)
    bench.answer(fetch_answer(batch(3, epoch=0)), to=fetches(bench)[-1])
    bench.command(leader=3, epoch=1, replicas=(1, 2, 3))
    bench.command(leader=2, epoch=2, replicas=(1, 2, 3))
    bench.answer(ends_at(1, epoch=0), to=old)
    assert 3 == bench.replica.log.end_offset


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_isr_write_of_the_deleted_topic_shrinks_nothing_of_the_new_one(protocol: str) -> None:
    """The new topic's follower counts for the high watermark, whatever becomes of the old one's ISR write."""
    bench = registered(protocol, replica_lag_ms_max=10)
    bench.zk.put_state(1, 0, (1, 2))
    bench.command(leader=1, epoch=0)
    held = bench.zk.nodes
    bench.hold("/brokers/topics/t/0/leaderAndISR", writes=True)
    bench.pass_ms(20)
    (write,) = bench.held
    assert (1,) == bench.replica.isr_asked and held is bench.zk.nodes
    delete(bench)
    again(bench, leader=1)
    bench.step(ZkAnswered(tag=write.tag, session=bench.session, results=(ZkDone(),)))
    assert (Role.LEADER, (1, 2)) == (bench.replica.role, bench.replica.isr)


def test_flush_of_the_deleted_topic_says_nothing_about_the_new_one() -> None:
    bench = Bench("kip101")
    bench.start()
    bench.command(leader=1, epoch=0)
    old = Flushed(tp=TP, generation=bench.replica.generation, upto=3)
    assert 1 == len(bench.observed("flushed", bench.step(old)))
    delete(bench)
    again(bench, leader=1)
    assert [] == bench.observed("flushed", bench.step(old))


def test_generation_of_a_new_replica_is_one_that_no_stopped_replica_had() -> None:
    bench = Bench("kip101")
    bench.start()
    had: set[int] = set()
    for turn in range(4):
        for epoch in range(turn + 1):
            bench.command(leader=1 + epoch % 2, epoch=epoch)
            had.add(bench.replica.generation)
        delete(bench)
        bench.command(leader=-1, epoch=-1)
        assert bench.replica.generation not in had
        delete(bench)


def test_answer_to_a_fetch_of_another_offset_is_void_and_asked_again() -> None:
    """Source: Kafka, AbstractFetcherThread.processFetchRequest."""
    bench = following("kip380")
    old = fetches(bench)[-1]
    bench.replica.log.append_as_follower([batch(2, epoch=0)])
    bench.answer(fetch_answer(batch(5, epoch=0), high_watermark=5), to=old)
    assert (2, 0) == (bench.replica.log.end_offset, bench.replica.high_watermark)
    assert [0, 2] == [part.fetch_offset for send in fetches(bench) for part in send.request.partitions]  # type: ignore[union-attr]


CHECKPOINT_MS = 5_000


def checkpoints(bench: Bench) -> list[dict[TopicPartition, int]]:
    return [dict(e.high_watermarks) for e in bench.effects if isinstance(e, WriteHighWatermarks)]


def test_checkpoint_after_a_deletion_has_no_high_watermark_of_the_topic() -> None:
    """It would be taken for that of the next topic of that name."""
    bench = leading("kip101", (0, 3), isr=(1,))
    bench.pass_ms(CHECKPOINT_MS)
    delete(bench)
    bench.pass_ms(CHECKPOINT_MS)
    assert [{TP: 3}, {}] == checkpoints(bench)


def test_new_topic_with_its_predecessors_high_watermark_is_checkpointed_all_the_same() -> None:
    """The creation of its log has removed the entry, so the same number must be written once more."""
    bench = leading("kip101", (0, 1), isr=(1,))
    bench.pass_ms(CHECKPOINT_MS)
    delete(bench)
    bench.command(leader=1, epoch=0, isr=(1,))
    bench.request(produce())
    bench.pass_ms(CHECKPOINT_MS)
    assert [{TP: 1}, {TP: 1}] == checkpoints(bench)
