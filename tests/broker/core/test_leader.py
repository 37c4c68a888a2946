"""The leader: produce, the epoch in every batch, the high watermark. O10, O11, X1 are Kafka's own cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from targets.broker.core.events import Arm, Caller, Effect, Flush, Flushed, Hungup, Received, WriteHighWatermarks
from targets.broker.core.messages import (
    ErrorCode,
    FetchResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS, EpochsFlushed
from tests.broker.core.asks import (
    ends_at,
    epoch_ends,
    epoch_question,
    fetch,
    fetch_answer,
    latest_is,
    lead,
    leading,
    produce,
    produced,
    registered,
)
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch, kinds

OTHER = TopicPartition("t", 1)
WITH_EPOCHS = tuple(name for name, rules in PROTOCOLS.items() if rules.epochs)
ON_LEAD = tuple(name for name in WITH_EPOCHS if PROTOCOLS[name].epoch_assigned_on_lead)
OK = ErrorCode.NONE


def log_in(bench: Bench) -> MemoryLog:
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    return log


def flushes(effects: Sequence[Effect]) -> list[Flush]:
    return [effect for effect in effects if isinstance(effect, Flush)]


def checkpoints(effects: Sequence[Effect]) -> list[tuple[tuple[TopicPartition, int], ...]]:
    return [effect.high_watermarks for effect in effects if isinstance(effect, WriteHighWatermarks)]


# --- produce: acks ----------------------------------------------------------------------------------------
def test_acks_0_is_appended_and_never_answered() -> None:
    """Source: Kafka Replication Design V3, G."""
    bench = leading()
    effects = bench.request(produce(batch(3), acks=0))
    assert bench.replica.log.end_offset == 3
    assert answers(effects) == []
    assert bench.broker.state.produces.requests == {}


def test_acks_1_is_answered_at_once_with_its_first_offset() -> None:
    """Source: Kafka Replication Design V3, G."""
    bench = leading("kip101", (0, 4))
    assert produced(bench.request(produce(batch(3), acks=1))) == [(OK, 4)]
    assert bench.replica.high_watermark == 0


def test_acks_1_is_answered_before_the_records_are_given_to_followers_that_wait() -> None:
    bench = leading()
    assert [] == answers(bench.request(fetch(0, replica=2, wait_ms=500)))
    mine, followers = answers(bench.request(produce(acks=1)))
    assert (ProduceResponse, FetchResponse) == (type(mine), type(followers))


def test_acks_all_waits_until_every_member_of_the_isr_has_the_record() -> None:
    """Source: Kafka Replication Design V3, G: "trigger potential acks to produce requests"."""
    bench = leading(isr=(1, 2, 3), replicas=(1, 2, 3))
    assert produced(bench.request(produce(batch(2), acks=-1))) == []
    assert produced(bench.request(fetch(2, replica=2))) == []
    assert produced(bench.request(fetch(1, replica=3))) == []
    assert produced(bench.request(fetch(2, replica=3))) == [(OK, 0)]


def test_acks_all_is_answered_at_once_when_the_leader_alone_is_in_sync() -> None:
    assert produced(leading(isr=(1,)).request(produce(batch(2), acks=-1))) == [(OK, 0)]


def test_acks_all_is_refused_and_not_appended_when_the_isr_is_too_small() -> None:
    bench = leading(isr=(1,), min_isr=2)
    assert produced(bench.request(produce(acks=-1))) == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
    assert bench.replica.log.end_offset == 0


def test_acks_1_needs_no_minimal_isr() -> None:
    assert produced(leading(isr=(1,), min_isr=2).request(produce(acks=1))) == [(OK, 0)]


def test_acks_all_tells_of_an_isr_that_became_too_small_after_the_append() -> None:
    """The record is in the log and may survive: error 20 is not a failure."""
    bench = leading(min_isr=2)
    assert produced(bench.request(produce(acks=-1))) == []
    effects = bench.command(leader=1, epoch=1, isr=(1,))
    assert produced(effects) == [(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)]
    assert bench.replica.log.end_offset == 1


def test_acks_all_times_out_with_the_record_in_the_log() -> None:
    bench = leading()
    bench.request(produce(acks=-1, timeout_ms=100))
    assert produced(bench.pass_ms(99)) == []
    assert produced(bench.pass_ms(1)) == [(ErrorCode.REQUEST_TIMED_OUT, -1)]
    assert bench.replica.log.end_offset == 1
    assert produced(bench.request(fetch(1, replica=2))) == []


def test_acks_all_goes_on_waiting_when_the_same_leader_gets_a_new_epoch() -> None:
    bench = leading()
    bench.request(produce(acks=-1))
    assert produced(bench.command(leader=1, epoch=1)) == []
    assert produced(bench.request(fetch(1, replica=2))) == [(OK, 0)]


@pytest.mark.parametrize("leader", [2, -1], ids=["another leads", "nobody leads"])
def test_acks_all_is_told_that_leadership_was_lost_while_it_waited(leader: int) -> None:
    """Source: Kafka Replication Design V3, C, becomeFollower."""
    bench = leading()
    bench.request(produce(acks=-1))
    assert produced(bench.command(leader=leader, epoch=1)) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert produced(bench.pass_ms(60_000)) == []


def test_hang_up_drops_what_the_connection_waited_for() -> None:
    bench = leading()
    for connection, request in ((5, produce(acks=-1)), (5, fetch(1, wait_ms=500)), (6, fetch(1, wait_ms=500))):
        bench.step(Received(caller=Caller(connection=connection, number=1), request=request))
    bench.step(Hungup(connection=5))
    assert bench.broker.state.produces.requests == {}
    assert [waiting.caller.connection for waiting in bench.broker.state.fetches.requests.values()] == [6]
    assert len(answers(bench.pass_ms(60_000))) == 1


@pytest.mark.parametrize(
    ("acks", "tp", "expected"),
    [
        (2, TP, ErrorCode.INVALID_REQUIRED_ACKS),
        (1, TopicPartition("u", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_produce_is_refused_for_wrong_acks_and_unknown_partitions(
    acks: int, tp: TopicPartition, expected: ErrorCode
) -> None:
    assert produced(leading().request(produce(acks=acks, tp=tp))) == [(expected, -1)]


def test_produce_to_a_follower_is_refused() -> None:
    bench = leading()
    bench.command(leader=2, epoch=1)
    assert produced(bench.request(produce())) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


def test_produce_over_several_partitions_answers_for_each_in_the_order_asked() -> None:
    bench = leading(isr=(1,))
    bench.command(leader=1, epoch=0, tp=OTHER)
    corrupt = ProducePartition(
        tp=TopicPartition("u", 0), batches=(), error=ErrorCode.CORRUPT_MESSAGE, error_text="crc is 1, not 2"
    )
    parts = [ProducePartition(tp=tp, batches=(batch(),)) for tp in (OTHER, TP)]
    request = ProduceRequest(acks=-1, timeout_ms=9, partitions=(parts[0], corrupt, parts[1]))
    # t-1 has a follower to wait for, so the whole request waits; t-0 is committed at once.
    assert answers(bench.request(request)) == []
    effects = bench.request(fetch(1, replica=2, tps=[OTHER]))
    (answer,) = [response for response in answers(effects) if isinstance(response, ProduceResponse)]
    assert [
        (OTHER, OK, 0, ""),
        (corrupt.tp, ErrorCode.CORRUPT_MESSAGE, -1, "crc is 1, not 2"),
        (TP, OK, 0, ""),
    ] == [(result.tp, result.error, result.base_offset, result.error_text) for result in answer.results]


# --- the epoch in every batch -----------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_leader_stamps_its_epoch_on_every_batch(protocol: str) -> None:
    """Source: KIP-101 step 3: "each new message set [...] is tagged with the new Leader Epoch"; steps 1, 2."""
    bench = leading(protocol, (0, 2), epoch=3)
    bench.request(produce(batch(2), batch(1)))
    bench.command(leader=1, epoch=4)
    bench.request(produce(batch(1)))
    assert [(item.base_offset, item.leader_epoch) for item in log_in(bench).batches] == [
        (0, 0),
        (2, 3),
        (4, 3),
        (5, 4),
    ]


def test_leader_stamps_no_epoch_and_keeps_no_epochs_under_the_old_protocol() -> None:
    bench = leading("hw", epoch=3)
    effects = bench.request(produce())
    assert [item.leader_epoch for item in log_in(bench).batches] == [-1]
    assert log_in(bench).epoch_writes == []
    assert bench.observed("checkpoint", effects) == []


@pytest.mark.parametrize("protocol", ["kip101", "kip279"])
def test_epoch_is_written_down_and_flushed_before_the_first_append_as_shipped(protocol: str) -> None:
    """Source: KIP-101 step 3, as in Kafka 0.11 to 2.0.0: at the first append, and before it."""
    bench = leading(protocol, (0, 2), epoch=3)
    assert bench.replica.epochs.entries == [(0, 0)]
    effects = bench.request(produce())
    # (entries, flushed, log end offset at that moment)
    assert log_in(bench).epoch_writes == [([(0, 0), (3, 2)], True, 2)]
    assert kinds(effects) == ["Observe", "Observe", "Answer"]
    assert len(bench.observed("checkpoint", effects[:1])) == 1
    bench.request(produce())
    assert len(log_in(bench).epoch_writes) == 1


@pytest.mark.parametrize("protocol", ON_LEAD)
def test_epoch_is_written_down_and_flushed_on_becoming_leader_to_the_letter(protocol: str) -> None:
    """Source: KIP-101 step 3: "first adds the new Leader Epoch and the log end offset [...]"; KAFKA-7415."""
    bench = leading(protocol, (0, 2), epoch=3)
    assert log_in(bench).epoch_writes == [([(0, 0), (3, 2)], True, 2)]
    bench.request(produce())
    assert len(log_in(bench).epoch_writes) == 1


def test_epoch_is_written_without_a_flush_when_the_footnote_is_the_rule() -> None:
    """Source: KIP-101, footnote to step 3: the file is flushed with the segment."""
    bench = leading(replace(PROTOCOLS["kip101-text"], epochs_flushed=EpochsFlushed.WITH_SEGMENT), epoch=3)
    assert log_in(bench).epoch_writes == [([(3, 0)], False, 0)]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_o10_becoming_leader_begins_an_epoch_by_rule(protocol: str) -> None:
    """Source: Kafka PartitionTest, testMakeLeaderUpdatesEpochCache (O10), from 2.0.1 on; KIP-101 step 3."""
    bench = leading(protocol, (0, 2), (5, 2), epoch=8)
    assert [(OK, *((8, 4) if protocol in ON_LEAD else (-1, -1)))] == epoch_ends(bench.request(epoch_question(8)))
    bench.request(produce())
    assert epoch_ends(bench.request(epoch_question(8))) == [(OK, 8, 5)]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_o11_same_epoch_again_changes_nothing(protocol: str) -> None:
    """Source: Kafka PartitionTest, testDoNotUpdateEpochStartOffsetIfLeaderEpochIsNotBumped (O11)."""
    bench = leading(protocol, epoch=8)
    bench.request(produce(batch(2)))
    effects = bench.command(leader=1, epoch=8)
    assert bench.observed("leader", effects) == []
    assert (bench.replica.epoch_start, bench.replica.epochs.entries) == (0, [(8, 0)])


# --- the high watermark -----------------------------------------------------------------------------------
def test_high_watermark_is_the_smallest_log_end_in_the_isr() -> None:
    """Source: Kafka Replication Design V3, G: "leader.hw = min of leo of every replica in ISR"."""
    bench = leading("kip101", (0, 9), isr=(1, 2, 3), replicas=(1, 2, 3))
    seen = []
    for follower, offset in ((2, 5), (4, 1), (3, 3), (3, 8), (2, 9)):
        bench.request(fetch(offset, replica=follower))
        seen.append(bench.replica.high_watermark)
    assert seen == [0, 0, 3, 5, 8]
    assert [moved["to"] for moved in bench.observed("high-watermark")] == [3, 5, 8]


def test_high_watermark_never_falls_while_one_leads() -> None:
    """Source: Kafka Replication Design V3, G."""
    bench = leading("kip101", (0, 9))
    for offset in (7, 2, 0):
        bench.request(fetch(offset, replica=2))
    assert bench.replica.high_watermark == 7
    bench.command(leader=1, epoch=1)
    bench.request(fetch(3, replica=2))
    assert bench.replica.high_watermark == 7


def test_new_leader_keeps_its_own_high_watermark() -> None:
    """Source: Kafka Replication Design V3, C: "the new leader's HW could be behind the HW of the previous"."""
    bench = leading("kip101", (0, 5), high_watermark=2)
    assert bench.replica.high_watermark == 2
    assert [moved["to"] for moved in bench.observed("high-watermark")] == []


def test_high_watermark_moves_at_once_when_the_new_leader_is_alone_in_sync() -> None:
    assert leading("kip101", (0, 5), isr=(1,)).replica.high_watermark == 5


def test_fetch_beyond_the_log_end_is_no_acknowledgement() -> None:
    """Source: KAFKA-8400, KAFKA-13141: a failed fetch is no progress."""
    bench = leading("kip101", (0, 3))
    bench.request(fetch(9, replica=2))
    assert bench.replica.progress[2].end == -1
    assert bench.replica.high_watermark == 0


@pytest.mark.parametrize(("forgets", "expected"), [(True, []), (False, [(OK, 4)])], ids=["rule", "mutant"])
def test_followers_ends_are_forgotten_on_becoming_leader(
    forgets: bool, expected: list[tuple[ErrorCode, int]]
) -> None:
    """
    A new leader forgets the ends that followers had reached when it led before.

    A follower reached 6 in this broker's earlier epoch; the broker then truncated to 4 under another leader. The
    follower's old end must not acknowledge records that it lacks; the mutant that keeps it commits falsely.
    """
    bench = leading(replace(PROTOCOLS["kip101"], forget_follower_ends=forgets), (0, 4), (0, 2))
    bench.request(fetch(6, replica=2))
    bench.command(leader=2, epoch=1)
    bench.answer(ends_at(4))
    assert bench.replica.log.end_offset == 4
    bench.command(leader=1, epoch=2)
    assert expected == produced(bench.request(produce(batch(2), acks=-1)))


# --- flush and checkpoint ---------------------------------------------------------------------------------
def test_log_is_flushed_after_so_many_records_and_nobody_waits_for_it() -> None:
    bench = leading(isr=(1,), flush_messages=3)
    assert flushes(bench.request(produce(batch(2)))) == []
    effects = bench.request(produce(batch(2), acks=-1))
    assert [flush.upto for flush in flushes(effects)] == [4]
    assert produced(effects) == [(OK, 2)]
    (flush,) = flushes(effects)
    told = bench.step(Flushed(tp=TP, generation=flush.generation, upto=flush.upto))
    assert [seen["upto"] for seen in bench.observed("flushed", told)] == [4]


def test_flush_that_a_cut_overtook_says_nothing() -> None:
    """A completed flush of records that were truncated since must not be recorded as durable."""
    bench = leading("kip101", (0, 2), flush_messages=1)
    bench.command(leader=2, epoch=1)
    bench.answer(ends_at(2))
    bench.answer(fetch_answer(batch(3, base=2, epoch=1)))
    (flush,) = flushes(bench.effects)
    bench.answer(fetch_answer(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    bench.answer(latest_is(2))
    assert bench.replica.log.end_offset == 2
    assert bench.step(Flushed(tp=TP, generation=flush.generation, upto=flush.upto)) == []


def test_high_watermarks_are_checkpointed_every_interval_when_one_moved() -> None:
    """Source: Kafka Replication Design V3, startReplica: "start the HW checkpoint thread for r"."""
    bench = leading("kip101", (0, 4), high_watermark_checkpoint_ms=1_000)
    assert checkpoints(bench.pass_ms(1_000)) == [((TP, 0),)]
    assert checkpoints(bench.pass_ms(1_000)) == []
    bench.request(fetch(3, replica=2))
    assert checkpoints(bench.pass_ms(1_000)) == [((TP, 3),)]


def test_tick_that_comes_too_early_is_asked_for_again() -> None:
    bench = leading()
    bench.request(fetch(0, wait_ms=500))
    at_ns = bench.broker.state.armed_ns
    assert [at_ns] == [arm.at_ns for arm in bench.pass_ms(499) if isinstance(arm, Arm)]


# --- two leaders at once ----------------------------------------------------------------------------------
def test_zombie_leader_cannot_commit_once_its_followers_follow_another() -> None:
    """Source: Kafka Replication Design V3, discussion 3: no follower fetches, and ZooKeeper refuses the shrink."""
    bench = registered(replica_lag_ms_max=1_000)
    lead(bench)
    bench.zk.put_state(2, 1, (2,))
    assert produced(bench.request(produce(acks=-1, timeout_ms=30_000))) == []
    for _ in range(20):
        assert produced(bench.pass_ms(1_000)) == []
    assert (bench.replica.isr, bench.replica.high_watermark) == ((1, 2), 0)
    assert (bench.zk.state().leader, bench.zk.state().leader_epoch, bench.zk.state().isr) == (2, 1, (2,))
    assert produced(bench.command(leader=2, epoch=1)) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
