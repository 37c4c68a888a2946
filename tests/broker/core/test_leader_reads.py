"""Reads from the leader: fetches that wait and wake, offsets, and where epochs end (KIP-101 4.3)."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import (
    ErrorCode,
    FetchRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    TopicPartition,
)
from tests.broker.core.asks import (
    epoch_ends,
    epoch_question,
    fetch,
    fetched,
    leading,
    list_offsets,
    listed,
    produce,
    read,
)
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch

OTHER = TopicPartition("t", 1)
OK = ErrorCode.NONE


def log_in(bench: Bench) -> MemoryLog:
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    return log


# --- fetch ------------------------------------------------------------------------------------------------
def test_follower_reads_up_to_the_log_end_and_consumer_up_to_the_high_watermark() -> None:
    """Source: Kafka Replication Design V3, G."""
    bench = leading("kip101", (0, 2), (0, 3), (0, 1))
    bench.request(fetch(5, replica=2))
    assert read(bench.request(fetch(0))) == [(OK, [0, 2], 5)]
    assert read(bench.request(fetch(0, replica=2))) == [(OK, [0, 2, 5], 5)]


def test_consumer_sees_a_batch_only_once_the_high_watermark_is_past_it() -> None:
    """Source: Kafka Replication Design V3, G."""
    bench = leading("kip101", (0, 2), (0, 3))
    assert read(bench.request(fetch(0))) == [(OK, [], 0)]
    bench.request(fetch(2, replica=2))
    assert read(bench.request(fetch(0))) == [(OK, [0], 2)]


def test_consumer_gets_nothing_of_a_batch_in_whose_middle_the_high_watermark_stands() -> None:
    """Source: KAFKA-6361, case 1: B is stuck at 16, within A's batch of 11 to 20; seen on Kafka 1.1.1."""
    bench = leading("kip101", (0, 2), (0, 3))
    assert read(bench.request(fetch(3, replica=2))) == [(OK, [2], 3)]
    assert [read(bench.request(fetch(offset))) for offset in (0, 2)] == [[(OK, [0], 3)], [(OK, [], 3)]]
    bench.request(fetch(5, replica=2))
    assert read(bench.request(fetch(2))) == [(OK, [2], 5)]


def test_consumer_between_high_watermark_and_log_end_gets_nothing_and_no_error() -> None:
    """Source: Kafka Replication Design V3, C and discussion 7: "the broker could just return an empty set"."""
    bench = leading("kip101", (0, 2), (0, 3))
    bench.request(fetch(2, replica=2))
    assert [read(bench.request(fetch(offset))) for offset in (3, 5)] == [[(OK, [], 2)]] * 2


@pytest.mark.parametrize("replica", [-1, 2], ids=["consumer", "follower"])
def test_fetch_beyond_the_log_end_or_before_its_start_is_out_of_range(replica: int) -> None:
    """Source: Kafka Replication Design V3, C: "larger than LEO [...] still return OffsetOutofRangeException"."""
    bench = leading("kip101", (0, 5))
    assert read(bench.request(fetch(6, replica=replica, wait_ms=500))) == [(ErrorCode.OFFSET_OUT_OF_RANGE, [], 0)]
    log_in(bench).start_offset = 3
    found = fetched(bench.request(fetch(2, replica=replica)))
    assert [(result.error, result.log_start_offset) for result in found] == [(ErrorCode.OFFSET_OUT_OF_RANGE, 3)]


def test_waiting_consumer_wakes_when_the_high_watermark_moves_not_when_the_log_grows() -> None:
    bench = leading()
    assert read(bench.request(fetch(0, wait_ms=500))) == []
    assert read(bench.request(produce())) == []
    assert read(bench.request(fetch(1, replica=2))) == [(OK, [0], 1), (OK, [], 1)]


def test_waiting_follower_wakes_when_the_log_grows() -> None:
    bench = leading()
    assert read(bench.request(fetch(0, replica=2, wait_ms=500))) == []
    assert read(bench.request(produce())) == [(OK, [0], 0)]
    assert bench.broker.state.fetches.requests == {}
    assert [key for key in bench.broker.state.timers if key[0] == "fetch-wait"] == []


def test_waiting_fetch_is_answered_empty_when_its_time_is_over() -> None:
    bench = leading()
    bench.request(fetch(0, wait_ms=500))
    assert read(bench.pass_ms(499)) == []
    assert read(bench.pass_ms(1)) == [(OK, [], 0)]
    assert read(bench.pass_ms(60_000)) == []


def test_fetch_waits_for_the_bytes_it_asked_for() -> None:
    bench = leading(isr=(1,))
    assert read(bench.request(fetch(0, wait_ms=500, min_bytes=batch().size + 1))) == []
    assert read(bench.request(produce())) == []
    assert read(bench.request(produce())) == [(OK, [0, 1], 2)]


def test_fetch_that_asks_for_no_bytes_never_waits() -> None:
    assert read(leading().request(fetch(0, wait_ms=500, min_bytes=0))) == [(OK, [], 0)]


def test_fetch_gives_at_least_one_batch_and_no_more_than_it_asked_for() -> None:
    bench = leading("kip101", (0, 1), (0, 1), (0, 1), isr=(1,))
    size = batch().size
    assert [read(bench.request(fetch(0, max_bytes=n))) for n in (1, 2 * size, 3 * size - 1)] == [
        [(OK, [0], 3)],
        [(OK, [0, 1], 3)],
        [(OK, [0, 1], 3)],
    ]


def test_waiting_fetch_is_told_that_leadership_was_lost() -> None:
    """Source: Kafka Replication Design V3, C, becomeFollower."""
    bench = leading()
    bench.request(fetch(0, replica=2, wait_ms=500))
    assert read(bench.command(leader=2, epoch=1)) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, [], -1)]


def test_fetch_over_several_partitions_answers_for_each_and_one_error_ends_the_wait() -> None:
    bench = leading("kip101", (0, 2))
    tps = [TP, TopicPartition("u", 0)]
    assert read(bench.request(fetch(2, replica=2, wait_ms=500, tps=tps))) == [
        (OK, [], 2),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [], -1),
    ]


def test_fetch_over_several_partitions_wakes_for_any_of_them() -> None:
    bench = leading(isr=(1,))
    bench.command(leader=1, epoch=0, isr=(1,), tp=OTHER)
    assert read(bench.request(fetch(0, wait_ms=500, tps=[OTHER, TP]))) == []
    assert read(bench.request(produce())) == [(OK, [], 0), (OK, [0], 1)]


def test_fetch_is_refused_by_a_follower_and_for_a_broker_that_holds_no_replica() -> None:
    bench = leading()
    assert read(bench.request(fetch(0, replica=8))) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, [], -1)]
    bench.command(leader=2, epoch=1)
    assert read(bench.request(fetch(0))) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, [], -1)]


def test_fetch_of_nothing_is_answered_at_once() -> None:
    request = FetchRequest(replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=1, partitions=())
    assert len(answers(leading().request(request))) == 1


# --- epoch requests and offsets ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "expected"),
    [(0, (0, 2)), (1, (0, 2)), (3, (3, 5)), (4, (-1, -1)), (-1, (-1, -1))],
    ids=["older", "between", "current", "newer", "none"],
)
def test_step_4_3_answers_the_next_epochs_start_or_the_log_end(query: int, expected: tuple[int, int]) -> None:
    """Source: KIP-101 step 4.3 and Request Semantics 1."""
    bench = leading("kip101", (0, 2), (3, 3), epoch=3)
    assert [(OK, *expected)] == epoch_ends(bench.request(epoch_question(query)))


def test_epochs_are_answered_only_for_partitions_that_the_broker_leads() -> None:
    """Source: KIP-101, Request Semantics 2; Kafka OffsetsForLeaderEpochTest (O1 to O4)."""
    bench = leading("kip101", (5, 42), epoch=5)
    bench.command(leader=2, epoch=5, tp=OTHER)
    questions = [epoch_question(5, tp).questions[0] for tp in (OTHER, TP, TopicPartition("u", 0))]
    assert epoch_ends(bench.request(OffsetForLeaderEpochRequest(questions=tuple(questions)))) == [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1),
        (OK, 5, 42),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


def test_s1_and_s2_leader_answers_as_the_scenarios_say() -> None:
    """Source: KIP-101, Scenario 1 (the answer is 2) and Scenario 2 (the answer is 1)."""
    same_epoch = leading("kip101", (0, 1), (0, 1))
    assert epoch_ends(same_epoch.request(epoch_question(0))) == [(OK, 0, 2)]
    new_epoch = leading("kip101", (0, 1), (1, 1), epoch=1)
    assert epoch_ends(new_epoch.request(epoch_question(0))) == [(OK, 0, 1)]


def test_offsets_are_listed_up_to_the_log_end_for_followers_and_the_high_watermark_for_clients() -> None:
    bench = leading("kip101", (0, 2), (0, 3))
    bench.request(fetch(2, replica=2))
    assert listed(bench.request(list_offsets(-1))) == [(OK, 2)]
    assert listed(bench.request(list_offsets(-1, replica=2))) == [(OK, 5)]
    log_in(bench).start_offset = 1
    assert listed(bench.request(list_offsets(-2))) == [(OK, 1)]


def test_offsets_by_time_are_listed_only_below_the_high_watermark() -> None:
    """In this bench a batch's crc stands for its time."""
    bench = leading(isr=(1, 2))
    for time in (10, 20):
        bench.request(produce(batch(2, crc=time)))
    bench.request(fetch(2, replica=2))
    assert [listed(bench.request(list_offsets(at))) for at in (5, 11, 99)] == [[(OK, 0)], [(OK, -1)], [(OK, -1)]]
    (found,) = answers(bench.request(list_offsets(5)))
    assert isinstance(found, ListOffsetsResponse)
    assert [10] == [result.timestamp for result in found.results]


@pytest.mark.parametrize("timestamp", [-3, -4, -(2**63)])
def test_negative_time_that_stands_for_an_offset_of_newer_versions_is_refused(timestamp: int) -> None:
    """Source: Kafka, KafkaApis.handleListOffsetRequest: UNSUPPORTED_VERSION below v7, which KIP-734 added."""
    bench = leading("kip101", (0, 2))
    assert [(ErrorCode.UNSUPPORTED_VERSION, -1)] == listed(bench.request(list_offsets(timestamp)))


def test_offsets_are_not_listed_by_a_follower_or_for_an_unknown_partition() -> None:
    bench = leading()
    bench.command(leader=2, epoch=1)
    assert listed(bench.request(list_offsets(-1))) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    unknown = list_offsets(-1, tp=TopicPartition("u", 0))
    assert listed(bench.request(unknown)) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
