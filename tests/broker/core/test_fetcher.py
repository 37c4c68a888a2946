"""
The fetcher's walk, races and errors, after Kafka's own cases.

R numbers the cases of AbstractFetcherThreadTest, D the truncation decisions. `answer` is the leader's answer.
"""

from __future__ import annotations

import pytest

from targets.broker.core.events import Send
from targets.broker.core.messages import (
    Batch,
    EpochAnswer,
    ErrorCode,
    FetchResponse,
    FetchResult,
    OffsetForLeaderEpochResponse,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Phase
from tests.broker.core.asks import asked, ends_at, fetch_answer, fetched_at, follow_all, given, named
from tests.broker.core.bench import TP, Bench, MemoryLog, batch, log_of, recovery

OTHER, THIRD = TopicPartition("t", 1), TopicPartition("t", 2)
WALKING = ("kip279", "kip279-2.0.1", "kip320", "kip380")
WITH_EPOCHS = tuple(name for name, rules in PROTOCOLS.items() if rules.epochs)


def following(
    protocol: str, *logs: MemoryLog, high_watermark: int = 0, epoch: int = 6
) -> tuple[Bench, list[Send]]:
    """Return broker 1, told to follow broker 2 in all of these logs, and what it then sends."""
    bench = Bench(protocol)
    bench.start(*[(log, recovery(log, high_watermark=high_watermark)) for log in logs])
    return bench, bench.sent(bench.request(follow_all([log.tp for log in logs], epoch=epoch)))


def ends(*answers: tuple[TopicPartition, int, int]) -> OffsetForLeaderEpochResponse:
    """Return a leader's answer: by partition, where which epoch ends."""
    found = [
        EpochAnswer(tp=tp, error=ErrorCode.NONE, leader_epoch=epoch, end_offset=end) for tp, end, epoch in answers
    ]
    return OffsetForLeaderEpochResponse(answers=tuple(found))


def gives(*batches: Batch, tp: TopicPartition = TP) -> FetchResponse:
    return FetchResponse(results=(given(tp, *batches),))


# --- the walk ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WALKING)
def test_d3_follower_asks_a_second_time_for_the_epoch_that_it_was_sent_back_to(protocol: str) -> None:
    """
    Source:  Kafka ReplicaFetcherThreadTest, shouldFetchLeaderEpochSecondTimeIfLeaderRepliesWithEpochNotKnown-
             ToFollower (D3, D3b): per partition two epoch requests and two truncations, no fetch before the last.
    """
    logs = [log_of((3, 120), (5, 80), tp=tp) for tp in (TP, OTHER)]
    bench, questions = following(protocol, *logs, high_watermark=198)
    assert asked(questions) == [5, 5]
    again = bench.sent(bench.answer(ends((TP, 155, 4), (OTHER, 143, 4)), to=questions[0]))
    assert (asked(again), fetched_at(again)) == ([3, 3], [])
    assert fetched_at(bench.sent(bench.answer(ends((TP, 101, 3), (OTHER, 102, 3)), to=again[0]))) == [101, 102]
    assert [cut["to"] for cut in bench.observed("truncate")] == [120, 120, 101, 102]


@pytest.mark.parametrize("protocol", WALKING)
def test_d7_only_partitions_with_an_epoch_are_asked_for_and_all_begin_to_fetch(protocol: str) -> None:
    """Source: Kafka ReplicaFetcherThreadTest, testFetchLeaderEpochRequestIfLastEpochDefinedFor... (D7)."""
    logs = [log_of((5, 1), tp=TP), log_of((5, 1), tp=OTHER), log_of(tp=THIRD)]
    bench, sends = following(protocol, *logs)
    assert (asked(sends), fetched_at(sends)) == ([5, 5], [])
    sends = bench.sent(bench.answer(ends((TP, 1, 5), (OTHER, 1, 5)), to=sends[0]))
    assert len(bench.observed("truncate")) == 3
    assert fetched_at(sends) == [0, 1, 1]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_d10_question_is_asked_once_for_each_time_it_begins_to_follow(protocol: str) -> None:
    """Source: Kafka ReplicaFetcherThreadTest, shouldFetchLeaderEpochOnFirstFetchOnly, before Fetch v12 (D10)."""
    bench, (question,) = following(protocol, log_of((5, 1)))
    bench.answer(ends_at(1, epoch=5), to=question)
    for _ in range(3):
        bench.answer(fetch_answer())
    assert (len(asked(bench.sent())), fetched_at(bench.sent())) == (1, [1, 1, 1, 1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_d16_d17_newer_epoch_of_the_same_leader_is_followed_anew_by_rule_and_an_equal_one_never(
    protocol: str,
) -> None:
    """
    Source:  Kafka ReplicaManagerTest, testBecomeFollowerWhenLeaderIsUnchangedButMissedLeaderUpdate, before Fetch
             v12 (D16): epoch 1 to 3, truncated to 5; PartitionTest, testMakeFollowerWithNoLeaderIdChange (D17).
    """
    bench, sends = following(protocol, log_of(*[(0, 1)] * 10), high_watermark=10, epoch=1)
    bench.answer(ends_at(10, epoch=0) if asked(sends) else fetch_answer(), to=sends[0])
    before = len(bench.observed("truncate"))
    anew = bench.sent(bench.command(leader=2, epoch=3))
    assert ([0] if PROTOCOLS[protocol].truncate_when_leader_unchanged else []) == asked(anew)
    for send in anew:
        bench.answer(ends_at(5, epoch=0), to=send)
    assert [5] * len(anew) == [cut["to"] for cut in bench.observed("truncate")[before:]]
    assert bench.sent(bench.command(leader=2, epoch=3)) == []


# --- races ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_r7_answer_for_a_partition_that_was_removed_meanwhile_changes_nothing(protocol: str) -> None:
    """Source: Kafka AbstractFetcherThreadTest, testTruncateToEpochEndOffsetsDuringRemovePartitions (R7)."""
    bench, (question,) = following(protocol, log_of((5, 3)))
    bench.request(
        StopReplicaRequest(controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=(StopReplica(tp=TP),))
    )
    assert bench.answer(ends_at(1, epoch=5), to=question) == []
    assert (bench.broker.state.replicas, bench.observed("truncate")) == ({}, [])


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
@pytest.mark.parametrize(
    "answer", [(), (EpochAnswer(tp=OTHER, error=ErrorCode.NONE, leader_epoch=5, end_offset=1),)]
)
def test_r8_answer_that_speaks_of_another_partition_cuts_nothing_and_is_asked_for_again(
    protocol: str, answer: tuple[EpochAnswer, ...]
) -> None:
    """
    Source:  Kafka AbstractFetcherThreadTest, testTruncationThrowsExceptionIfLeaderReturnsPartitionsNotRequested-
             InFetchEpochs (R8). Kafka's thread fails; here the request counts as unanswered.
    """
    bench, (question,) = following(protocol, log_of((5, 3)))
    bench.answer(OffsetForLeaderEpochResponse(answers=answer), to=question)
    assert (bench.replica.log.end_offset, bench.observed("truncate")) == (3, [])
    assert asked(bench.sent(bench.pass_ms(1_000))) == [5]


def test_fetch_answered_for_another_partition_appends_nothing_and_is_tried_again() -> None:
    bench, _ = following("hw", log_of((-1, 2)), high_watermark=2)
    bench.answer(gives(batch(1, base=2), tp=OTHER))
    assert bench.replica.log.end_offset == 2
    assert fetched_at(bench.sent(bench.pass_ms(1_000))) == [2]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_r11_answer_for_a_partition_that_is_led_here_meanwhile_changes_nothing(protocol: str) -> None:
    """Source: Kafka ReplicaFetcherThreadTest, shouldFilterPartitionsMadeLeaderDuringLeaderEpochRequest (R11)."""
    logs = [log_of(*[(5, 1)] * 100, tp=tp) for tp in (TP, OTHER)]
    bench, (question,) = following(protocol, *logs)
    bench.command(leader=1, epoch=7, tp=TP)
    bench.answer(ends((TP, 52, 5), (OTHER, 49, 5)), to=question)
    assert [log.end_offset for log in logs] == [100, 49]


# --- errors --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_r9_partition_that_fails_leaves_the_other_at_work_and_is_taken_up_again(protocol: str) -> None:
    """
    Source:  Kafka AbstractFetcherThreadTest, testFetcherThreadHandlingPartitionFailureDuringAppending (R9). A log
             that cannot be truncated or read is different: a disk error ends this broker.
    """
    logs = [log_of((5, 2), tp=tp) for tp in (TP, OTHER)]
    bench, (question,) = following(protocol, *logs)
    bench.answer(ends((TP, 2, 5), (OTHER, 2, 5)), to=question)
    results = (given(TP, batch(2, base=1, epoch=6)), given(OTHER, batch(1, base=2, epoch=6)))
    assert fetched_at(bench.sent(bench.answer(FetchResponse(results=results)))) == [3]
    phases = [bench.broker.state.replicas[tp].phase for tp in (TP, OTHER)]
    assert (phases, [log.end_offset for log in logs]) == ([Phase.FAILED, Phase.FETCHING], [2, 3])
    assert asked(bench.sent(bench.command(leader=3, epoch=7, replicas=(1, 2, 3)))) == [5]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_r10_r13_fetch_that_fails_is_tried_again_after_the_back_off_and_delays_no_other(protocol: str) -> None:
    """
    Source:  Kafka AbstractFetcherThreadTest, testCorruptMessage (R10) and testDelay; ReplicaFetcherThreadTest,
             testPartitionsInError (R13).
    """
    bench, (send,) = following(protocol, log_of(tp=TP), log_of(tp=OTHER))
    if asked([send]):
        (send,) = bench.sent(bench.answer(ends((TP, 0, -1), (OTHER, 0, -1)), to=send))
    results = (given(TP, error=ErrorCode.CORRUPT_MESSAGE), given(OTHER, batch(1)))
    (other,) = bench.sent(bench.answer(FetchResponse(results=results), to=send))
    assert named(other) == [OTHER]
    assert bench.sent(bench.pass_ms(999)) == []
    assert bench.sent(bench.pass_ms(1)) == []  # its turn comes with the next request
    (again,) = bench.sent(bench.answer(gives(tp=OTHER), to=other))
    assert named(again) == [TP, OTHER]
    bench.answer(gives(batch(2)), to=again)
    assert [bench.broker.state.replicas[tp].log.end_offset for tp in (TP, OTHER)] == [2, 1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_o12_question_that_finds_no_network_is_asked_again(protocol: str) -> None:
    """Source: Kafka OffsetsForLeaderEpochTest, shouldHandleExceptionFromBlockingSend (O12): no truncation."""
    bench, sends = following(protocol, log_of(*[(0, 1)] * 3), high_watermark=3)
    assert bench.sent(bench.answer(None, to=sends[0])) == []
    assert bench.replica.log.end_offset == 3
    assert [type(sends[0].request)] == [type(send.request) for send in bench.sent(bench.pass_ms(1_000))]


# --- epochs without records ------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", ["kip279-2.0.1", "kip320", "kip380"])
def test_empty_epochs_that_conflict_do_not_keep_it_asking(protocol: str) -> None:
    """
    Source:  KAFKA-10706. Each broker led an epoch at offset 2 in which nothing was written: an answer at the log
             end must still remove the follower's own entry.
    """
    bench = Bench(protocol)
    log = log_of((0, 2))
    bench.start((log, recovery(log)))
    bench.command(leader=1, epoch=1)
    assert bench.replica.epochs.entries == [(0, 0), (1, 2)]
    (question,) = bench.sent(bench.command(leader=2, epoch=2))
    effects = bench.answer(ends_at(2, epoch=0), to=question)
    assert (fetched_at(bench.sent(effects)), bench.replica.epochs.entries) == ([2], [(0, 0)])
    assert log.epoch_writes[-1][0] == [(0, 0)]


def test_l9_follower_keeps_the_epochs_of_what_it_fetched() -> None:
    """Source: Kafka UnifiedLogTest, followerShouldSaveEpochInformationFromReplicatedMessagesTo... (L9)."""
    bench, (fetch,) = following("kip320", log_of())
    bench.answer(gives(*[batch(1, base=at, epoch=42) for at in range(50)]), to=fetch)
    assert (bench.replica.epochs.latest, bench.replica.epochs.entries) == (42, [(42, 0)])


def test_l1_high_watermark_never_passes_the_log_end_and_falls_with_a_cut() -> None:
    """Source: Kafka UnifiedLogTest, testHighWatermarkMaintenance, testMaybeUpdateHighWatermarkAs... (L1, L2)."""
    bench, (fetch,) = following("kip279", log_of(), epoch=1)
    seen = []
    for base, leaders in ((0, 0), (3, 1), (3, 5), (3, 6)):
        given = (batch(3, base=base, epoch=1),) if base == bench.replica.log.end_offset else ()
        result = FetchResult(tp=TP, error=ErrorCode.NONE, high_watermark=leaders, batches=given)
        (fetch,) = bench.sent(bench.answer(FetchResponse(results=(result,)), to=fetch))
        seen.append((bench.replica.log.end_offset, bench.replica.high_watermark))
    assert seen == [(3, 0), (6, 1), (6, 5), (6, 6)]
    bench.command(leader=3, epoch=2, replicas=(1, 2, 3))
    bench.answer(ends_at(3, epoch=1))
    assert (bench.replica.log.end_offset, bench.replica.high_watermark) == (3, 3)


@pytest.mark.parametrize(("cut", "entries"), [(20, 3), (11, 2), (10, 1), (0, 0)])
def test_l5_epochs_are_cut_with_the_log(cut: int, entries: int) -> None:
    """Source: Kafka UnifiedLogTest, shouldTruncateLeaderEpochCheckpointFileWhenTruncatingLog (L5)."""
    log = log_of(*[(0, 1)] * 10, *[(1, 1)] * 6, *[(2, 1)] * 4)
    bench, (question,) = following("kip101", log)
    bench.answer(ends_at(cut), to=question)
    assert (log.end_offset, len(bench.replica.epochs.entries)) == (cut, entries)
    assert cut == 20 or log.epoch_writes[-1][0] == bench.replica.epochs.entries


@pytest.mark.parametrize(("epoch", "start", "cut"), [(20, 29, 29), (24, 29, 30)])
def test_l4_cut_at_or_past_the_log_end_takes_only_epochs_that_begin_there(
    epoch: int, start: int, cut: int
) -> None:
    """Source: Kafka UnifiedLogTest, testTruncateToEndOffsetClearsEpochCache (L4)."""
    log = MemoryLog(
        TP, batches=[batch(1, base=27, epoch=19), batch(1, base=28, epoch=19)], start_offset=27, end_offset=29
    )
    bench, (question,) = following("kip320", log)
    bench.replica.epochs.assign(epoch, start)
    bench.answer(ends_at(cut, epoch=19), to=question)
    assert (log.end_offset, bench.replica.epochs.entries) == (29, [(19, 27)])
