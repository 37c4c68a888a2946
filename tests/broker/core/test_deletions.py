"""DeleteRecords: what a leader deletes, when it answers, and what it refuses (KIP-107)."""

from __future__ import annotations

import pytest

from targets.broker.core.events import Effect, Hungup
from targets.broker.core.messages import (
    DeletePartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS, Rules, with_rule
from tests.broker.core.asks import THREE, ends_at, fetch, fetch_answer, leader_of, produce
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch, recovery

OTHER = TopicPartition("other", 0)
TIMEOUT_MS = 1_000


def delete(before: int, *tps: TopicPartition) -> DeleteRecordsRequest:
    """Return a deletion before one offset of each of these partitions."""
    parts = tuple(DeletePartition(tp=tp, offset=before) for tp in tps or (TP,))
    return DeleteRecordsRequest(partitions=parts, timeout_ms=TIMEOUT_MS)


def deleted(effects: list[Effect]) -> list[tuple[ErrorCode, int]]:
    """Return (error, low watermark) of each partition of the answers to deletions."""
    found = [answer for answer in answers(effects) if isinstance(answer, DeleteRecordsResponse)]
    return [(result.error, result.low_watermark) for answer in found for result in answer.results]


def follows(offset: int, start: int, replica: int = 2) -> FetchRequest:
    """Return a follower's fetch that says where its log starts."""
    part = FetchPartition(tp=TP, fetch_offset=offset, max_bytes=1_000_000, log_start_offset=start)
    return FetchRequest(replica_id=replica, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, partitions=(part,))


def leader(*, isr: tuple[int, ...] = (1, 2), committed: int = 10) -> Bench:
    """Return a leader of ten records, of which so many are committed."""
    bench = leader_of(10, isr=isr)
    for member in isr[1:]:
        bench.request(follows(committed, 0, member))
    assert committed == bench.replica.high_watermark
    return bench


@pytest.mark.parametrize(("before", "to"), [(4, 4), (10, 10), (-1, 10), (0, 0)])
def test_leader_alone_in_its_isr_deletes_and_answers_at_once(before: int, to: int) -> None:
    bench = leader(isr=(1,))
    assert [(ErrorCode.NONE, to)] == deleted(bench.request(delete(before)))
    assert (to, 10) == (bench.replica.log.start_offset, bench.replica.log.end_offset)
    moves = [(seen["from"], seen["to"], seen["reason"]) for seen in bench.observed("log-start")]
    assert ([(0, to, "delete-records")] if to else []) == moves


@pytest.mark.parametrize("before", [8, 11, -2])
def test_offset_past_the_high_watermark_or_below_0_is_out_of_range(before: int) -> None:
    """Source: Kafka, Partition.deleteRecordsOnLeader: "the specified offset is higher than the high watermark"."""
    bench = leader(committed=7)
    assert [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)] == deleted(bench.request(delete(before)))
    assert 0 == bench.replica.log.start_offset


def test_answer_waits_until_the_logs_of_the_isr_start_there() -> None:
    bench = leader(isr=THREE)
    assert [] == deleted(bench.request(delete(6)))
    assert 6 == bench.replica.log.start_offset
    assert [] == deleted(bench.request(follows(10, 6, 2)))
    assert [] == deleted(bench.request(follows(10, 5, 3)))
    assert [(ErrorCode.NONE, 6)] == deleted(bench.request(follows(10, 6, 3)))
    assert [] == deleted(bench.pass_ms(TIMEOUT_MS))


def test_answer_waits_for_no_member_that_has_left_the_isr() -> None:
    bench = leader(isr=THREE)
    bench.request(delete(6))
    bench.request(produce(batch()))
    bench.now_ns += 25_000_000_000
    bench.request(follows(10, 6, 2))
    bench.request(follows(11, 6, 2))
    timed_out = bench.pass_ms(10_000)
    assert (1, 2) == bench.replica.isr
    assert (ErrorCode.REQUEST_TIMED_OUT, -1) in deleted(timed_out)  # the wait was over before the ISR shrank
    assert [(ErrorCode.NONE, 6)] == deleted(bench.request(delete(6)))


def test_deletion_that_the_isr_does_not_follow_in_time_is_answered_so_and_stands() -> None:
    bench = leader()
    bench.request(delete(6))
    assert [] == deleted(bench.pass_ms(TIMEOUT_MS - 1))
    assert [(ErrorCode.REQUEST_TIMED_OUT, -1)] == deleted(bench.pass_ms(1))
    assert 6 == bench.replica.log.start_offset


def test_leader_that_leads_no_more_says_so_to_who_waits() -> None:
    bench = leader()
    bench.request(delete(6))
    assert [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] == deleted(bench.command(leader=2, epoch=9))


def test_leader_of_a_smaller_isr_answers_who_waits() -> None:
    """The controller's command of a new epoch takes a member away, for which nothing waits any more."""
    bench = leader()
    assert [] == deleted(bench.request(delete(6)))
    assert [(ErrorCode.NONE, 6)] == deleted(bench.command(leader=1, epoch=9, isr=(1,), replicas=THREE))


def test_each_partition_has_its_own_answer() -> None:
    bench = leader(isr=(1,))
    found = deleted(bench.request(delete(3, TP, OTHER)))
    assert [(ErrorCode.NONE, 3), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)] == found
    bench.command(leader=2, epoch=9)
    assert [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] == deleted(bench.request(delete(3)))


def test_closed_connection_waits_for_no_answer() -> None:
    bench = leader()
    bench.request(delete(6))
    bench.step(Hungup(connection=bench._callers))
    assert not bench.broker.state.deletions
    assert [] == deleted(bench.request(follows(10, 6)))


def test_consumer_that_waits_below_the_new_start_is_answered_at_once() -> None:
    """Source: Kafka Replication Design V3, C: an offset before the log's start is out of range."""
    bench = leader(isr=(1,))
    assert [] == answers(bench.request(fetch(4, wait_ms=500, min_bytes=1_000_000)))
    found = [each for each in answers(bench.request(delete(6))) if isinstance(each, FetchResponse)]
    assert [(ErrorCode.OFFSET_OUT_OF_RANGE, 6)] == [
        (result.error, result.log_start_offset) for answer in found for result in answer.results
    ]


def joins(rules: Rules | str) -> Bench:
    """Return a follower without a record, whose leader's log starts at 4, after it was sent a batch from 2 on."""
    log = MemoryLog(TP, start_offset=4, end_offset=4)
    bench = Bench(rules)
    bench.start((log, recovery(log, high_watermark=4)))
    bench.command(leader=2, epoch=1)
    if isinstance(bench.sent()[-1].request, OffsetForLeaderEpochRequest):
        bench.answer(ends_at(-1, epoch=-1))
    bench.answer(fetch_answer(batch(count=4, base=2, epoch=1), high_watermark=6))
    return bench


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_follower_without_a_record_begins_with_the_batch_in_which_its_leaders_log_starts(protocol: str) -> None:
    """Source: KAFKA-6975, since 2.0.0; before, its fetcher ends with an offset that is out of order."""
    bench = joins(protocol)
    begins = PROTOCOLS[protocol].start_inside_batch
    assert (not begins, (2, 6) if begins else (4, 4)) == (
        bool(bench.observed("stuck")),
        (bench.replica.log.start_offset, bench.replica.log.end_offset),
    )


def test_follower_is_stuck_where_the_rule_does_not_let_it_begin_inside_a_batch() -> None:
    assert joins(with_rule(PROTOCOLS["kip380"], "start_inside_batch=no")).observed("stuck")
