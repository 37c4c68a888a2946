"""The follower: epoch request, answer, truncation, fetch. S1 and S2 are KIP-101's two scenarios as numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.events import Effect, Send
from targets.broker.core.messages import (
    Batch,
    EpochAnswer,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from targets.broker.core.rules import PROTOCOLS, EpochCut
from targets.broker.core.state import Phase
from tests.broker.core.bench import TP, Bench, MemoryLog, batch, log_of, recovery

WITH_EPOCHS = tuple(name for name, rules in PROTOCOLS.items() if rules.epochs)


def following(
    protocol: str,
    log: MemoryLog,
    *,
    high_watermark: int = 0,
    epoch: int = 1,
    file_epochs: list[tuple[int, int]] | None = None,
) -> tuple[Bench, list[Effect]]:
    """Start broker 1 with this log and tell it to follow broker 2; return it and the effects of the command."""
    bench = Bench(protocol)
    bench.start((log, recovery(log, high_watermark=high_watermark, file_epochs=file_epochs)))
    return bench, bench.command(leader=2, epoch=epoch)


def epoch_answer(end: int, epoch: int = -1, error: ErrorCode = ErrorCode.NONE) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        answers=(EpochAnswer(tp=TP, error=error, leader_epoch=epoch, end_offset=end),)
    )


def fetched(*batches: Batch, high_watermark: int = 0, error: ErrorCode = ErrorCode.NONE) -> FetchResponse:
    return FetchResponse(
        results=(FetchResult(tp=TP, error=error, high_watermark=high_watermark, batches=batches),)
    )


def question(send: Send) -> int:
    assert isinstance(send.request, OffsetForLeaderEpochRequest)
    return send.request.questions[0].leader_epoch


def fetch_offset(send: Send) -> int:
    assert isinstance(send.request, FetchRequest)
    return send.request.partitions[0].fetch_offset


# --- S1 and S2 ---------------------------------------------------------------------------------------------
def test_s1_follower_keeps_m2_when_its_high_watermark_lags() -> None:
    """Source: KIP-101, Scenario 1 and its walk through the solution (S1): the answer is 2, no truncation."""
    for protocol in WITH_EPOCHS:
        bench, _ = following(protocol, log_of((0, 1), (0, 1)), high_watermark=1, epoch=0)
        assert question(bench.sent()[-1]) == 0
        effects = bench.answer(epoch_answer(2))
        assert bench.replica.log.end_offset == 2
        assert [
            {key: cut[key] for key in ("from", "to", "end")} for cut in bench.observed("truncate", effects)
        ] == [{"from": 2, "to": 2, "end": 2}]
        assert fetch_offset(bench.sent(effects)[0]) == 2


def test_s1_old_rule_cuts_m2_before_anybody_is_asked() -> None:
    """Source: KIP-101, Scenario 1; Kafka Replication Design V3, becomeFollower: "truncate the log to r.hw"."""
    bench, effects = following("hw", log_of((-1, 1), (-1, 1)), high_watermark=1, epoch=0)
    assert bench.replica.log.end_offset == 1
    assert bench.observed("truncate", effects)[0]["reason"] == "high-watermark"
    assert [fetch_offset(send) for send in bench.sent(effects)] == [1]


def test_s2_follower_cuts_its_orphan_when_the_leader_began_an_epoch_before_it() -> None:
    """Source: KIP-101, Scenario 2 (S2): the leader's epoch 1 starts at 1, so m2 at 1 is orphaned."""
    for protocol in WITH_EPOCHS:
        bench, _ = following(protocol, log_of((0, 1), (0, 1)), high_watermark=2)
        effects = bench.answer(epoch_answer(1))
        assert bench.replica.log.end_offset == 1
        assert bench.replica.high_watermark == 1
        assert bench.observed("truncate", effects)[0]["reason"] == "epoch-answer"
        assert fetch_offset(bench.sent(effects)[0]) == 1


def test_s2_old_rule_keeps_the_orphan_when_the_high_watermark_is_past_it() -> None:
    """Source: KIP-101, Scenario 2, under the rule that it replaces: the logs diverge at 1."""
    bench, _ = following("hw", log_of((-1, 1), (-1, 1)), high_watermark=2)
    assert bench.replica.log.end_offset == 2


# --- KIP-101, step by step -----------------------------------------------------------------------------------
def test_step_4_2_asks_with_the_latest_epoch_of_its_own_cache() -> None:
    """Source: KIP-101 step 4.2: "the latest Leader Epoch in the follower's Leader Epoch Sequence"."""
    bench, _ = following("kip101", log_of((0, 2), (3, 1)), epoch=7)
    assert question(bench.sent()[-1]) == 3


def test_step_4_4_drops_the_epochs_past_the_answer_before_the_log_is_cut() -> None:
    """Source: KIP-101 steps 4.4 and 4.5."""
    log = log_of((0, 2), (1, 2))
    bench, _ = following("kip101", log, epoch=2)
    bench.answer(epoch_answer(1))
    assert bench.replica.epochs.entries == [(0, 0)]
    # Written and flushed while the log end offset was still 4; the truncation came after.
    assert log.epoch_writes[-1] == ([(0, 0)], True, 4)
    assert log.end_offset - 1 == 0


def test_step_4_4_to_the_letter_resets_the_last_epoch_to_the_answer() -> None:
    """Source: KIP-101 step 4.4, protocol kip101-text."""
    bench, _ = following("kip101-text", log_of((0, 2), (1, 2)), epoch=2)
    bench.answer(epoch_answer(1))
    assert bench.replica.epochs.entries == [(0, 0), (1, 1)]
    assert EpochCut.PAST is bench.replica.epochs.rules.epoch_cut


def test_step_4_5_never_lengthens_a_log_that_is_shorter_than_the_answer() -> None:
    """Source: KIP-101 step 4.5; Kafka's AbstractFetcherThread takes the smaller of the two."""
    bench, _ = following("kip101", log_of((0, 2)))
    bench.answer(epoch_answer(9))
    assert bench.replica.log.end_offset == 2


def test_step_4_6_fetches_only_after_the_cut() -> None:
    """Source: KIP-101 step 4.6."""
    bench, effects = following("kip101", log_of((0, 2)))
    assert [OffsetForLeaderEpochRequest] == [type(send.request) for send in bench.sent(effects)]
    effects = bench.answer(epoch_answer(1))
    assert [FetchRequest] == [type(send.request) for send in bench.sent(effects)]


def test_step_4_7_1_writes_a_new_epoch_down_before_its_records_are_appended() -> None:
    """Source: KIP-101 steps 4.7.1 and 4.7.2."""
    log = log_of((0, 2))
    bench, _ = following("kip101", log)
    bench.answer(epoch_answer(2))
    bench.answer(fetched(batch(3, base=2, epoch=4), high_watermark=2))
    assert log.epoch_writes[-1] == ([(0, 0), (4, 2)], True, 2)
    assert log.end_offset == 5


def test_appends_verbatim_what_the_leader_stamped() -> None:
    """Source: KIP-101: the epoch "is then propagated through the replication protocol"."""
    log = log_of((0, 1))
    bench, _ = following("kip101", log)
    bench.answer(epoch_answer(1))
    bench.answer(fetched(batch(1, base=1, epoch=3, crc=99)))
    assert [(item.leader_epoch, item.crc) for item in log.batches] == [(0, 7), (3, 99)]


# --- the fallback --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", ["kip279", "kip279-2.0.1", "kip320", "kip380"])
def test_cuts_to_its_high_watermark_when_it_knows_no_epoch(protocol: str) -> None:
    """Source: KIP-101, compatibility: "truncating the log to its high watermark"."""
    bench, effects = following(protocol, log_of((-1, 3)), high_watermark=0, file_epochs=[])
    assert bench.replica.log.end_offset == 0
    assert [FetchRequest] == [type(send.request) for send in bench.sent(effects)]


@pytest.mark.parametrize("protocol", ["kip101", "kip101-text"])
@pytest.mark.parametrize(
    ("answer", "left"), [(3, 3), (-1, 1)], ids=["leader's cache empty", "leader knows epochs"]
)
def test_asks_with_no_epoch_and_believes_the_answer_up_to_1_1_1(protocol: str, answer: int, left: int) -> None:
    """Source: KAFKA-6857: a leader with an empty cache returns its log end, and a tail that may diverge stays."""
    bench, effects = following(protocol, log_of(*[(-1, 1)] * 3), high_watermark=1, file_epochs=[])
    assert [-1] == [question(send) for send in bench.sent(effects)]
    bench.answer(epoch_answer(answer))
    assert bench.replica.log.end_offset == left


def test_cuts_to_its_high_watermark_when_the_leader_cannot_find_the_epoch() -> None:
    """Source: KIP-101, compatibility: "if the leader can't find the LastOffset"."""
    bench, _ = following("kip101", log_of((0, 1), (0, 1), (0, 1)), high_watermark=2)
    effects = bench.answer(epoch_answer(-1))
    assert bench.replica.log.end_offset == 2
    assert bench.observed("truncate", effects)[0]["reason"] == "no-epoch-information"


def test_cuts_to_its_high_watermark_when_the_leader_cannot_be_asked() -> None:
    """Source: KIP-101, compatibility: "the LeaderEpochRequest will only be sent if all brokers support it"."""
    bench, _ = following("kip101", log_of((0, 1), (0, 1)), high_watermark=1)
    bench.answer(epoch_answer(-1, error=ErrorCode.UNSUPPORTED_VERSION))
    assert bench.replica.log.end_offset == 1


# --- errors --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_asks_again_after_a_back_off_while_the_leader_answers_with_an_error(error: ErrorCode) -> None:
    """Source: Kafka ReplicaFetcherThreadTest, shouldPollIndefinitelyIfLeaderReturnsAnyException (R12)."""
    bench, _ = following("kip101", log_of(*[(0, 1)] * 300), high_watermark=100)
    for _ in range(4):
        assert bench.sent(bench.answer(epoch_answer(-1, error=error))) == []
        assert len(bench.sent(bench.pass_ms(1_000))) == 1
    bench.answer(epoch_answer(156))
    assert [cut["to"] for cut in bench.observed("truncate")] == [156]


def test_asks_again_when_the_connection_to_the_leader_is_lost() -> None:
    bench, _ = following("kip101", log_of((0, 2)), high_watermark=1)
    bench.answer(None)
    assert bench.replica.log.end_offset == 2
    assert [question(send) for send in bench.sent(bench.pass_ms(1_000))] == [0]


def test_is_stuck_when_the_leaders_batch_spans_its_log_end() -> None:
    """Source: KIP-101, Scenario 2: "a compressed message set in one replica points to the midpoint"."""
    bench, _ = following("hw", log_of((-1, 1), (-1, 1)), high_watermark=2)
    effects = bench.answer(fetched(batch(5, base=1), high_watermark=6))
    assert Phase.FAILED is bench.replica.phase
    assert [stuck["reason"] for stuck in bench.observed("stuck", effects)] == ["out-of-order-append"]
    assert bench.sent(bench.pass_ms(60_000)) == []
    assert bench.replica.log.end_offset == 2


def test_is_freed_by_the_next_leader() -> None:
    """Source: KIP-101, Scenario 2."""
    bench, _ = following("hw", log_of((-1, 1), (-1, 1)), high_watermark=2)
    bench.answer(fetched(batch(5, base=1)))
    assert len(bench.sent(bench.command(leader=3, epoch=2, replicas=(1, 2, 3)))) == 1


def test_answer_of_an_older_leader_changes_nothing() -> None:
    """Source: Kafka Replication Design V3, becomeLeader: nothing from the old leader may be appended any more."""
    bench, effects = following("kip101", log_of((0, 4)))
    late = bench.sent(effects)[0]
    bench.command(leader=3, epoch=2, replicas=(1, 2, 3))
    bench.answer(epoch_answer(1), to=late)
    assert bench.replica.log.end_offset == 4


def test_late_answer_of_the_same_leader_is_taken_or_dropped_by_rule() -> None:
    """Source: KAFKA-7786."""
    for drops, expected in ((False, 1), (True, 4)):
        bench = Bench(replace(PROTOCOLS["kip101"], drop_stale_answer=drops))
        log = log_of((0, 1), (0, 3))
        bench.start((log, recovery(log)))
        bench.command(leader=2, epoch=1)
        late = bench.sent()[-1]
        bench.command(leader=2, epoch=2)
        bench.answer(epoch_answer(1), to=late)
        assert expected == log.end_offset


# --- V3 G: fetching --------------------------------------------------------------------------------------------
def test_high_watermark_follows_the_leaders_as_far_as_the_log_reaches() -> None:
    """Source: Kafka Replication Design V3, G: "r.hw = response.hw"; Kafka UnifiedLogTest L2."""
    bench, _ = following("hw", log_of((-1, 1)), high_watermark=1)
    bench.answer(fetched(batch(2, base=1), high_watermark=9))
    assert bench.replica.high_watermark == 3
    bench.answer(fetched(high_watermark=2))
    assert bench.replica.high_watermark == 2
    assert [moved["to"] for moved in bench.observed("high-watermark")] == [3, 2]


def test_fetches_again_at_once_from_its_new_end() -> None:
    """Source: Kafka Replication Design V3, G and ReplicaFetchRequest: "advance offset in ReplicaFetchRequest"."""
    bench, _ = following("hw", log_of((-1, 1)), high_watermark=1)
    effects = bench.answer(fetched(batch(2, base=1)))
    assert [fetch_offset(send) for send in bench.sent(effects)] == [3]


def bound(offset: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(results=(ListOffsetsResult(tp=TP, error=ErrorCode.NONE, offset=offset),))


def test_cuts_a_log_longer_than_the_leaders_to_the_leaders_end() -> None:
    """Source: Kafka's handling of OFFSET_OUT_OF_RANGE; KAFKA-3924 made brokers exit here, this one never does."""
    bench, _ = following("hw", log_of((-1, 1), (-1, 1)), high_watermark=2)
    bench.answer(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert isinstance(bench.sent()[-1].request, ListOffsetsRequest)
    effects = bench.answer(bound(1))
    assert bench.replica.log.end_offset == 1
    assert bench.observed("truncate", effects)[0]["reason"] == "out-of-range"
    assert [fetch_offset(send) for send in bench.sent(effects)] == [1]


def test_starts_anew_when_the_leaders_log_begins_past_its_own_end() -> None:
    """Source: Kafka's fetchOffsetAndTruncate; KAFKA-9491: the high watermark is reset with it."""
    bench, _ = following("kip101", log_of((0, 2)))
    bench.answer(epoch_answer(2))
    bench.answer(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    bench.answer(bound(50))
    effects = bench.answer(bound(40))
    assert (
        bench.replica.log.start_offset,
        bench.replica.log.end_offset,
        bench.replica.high_watermark,
    ) == (40, 40, 40)
    assert bench.replica.epochs.entries == []
    assert [fetch_offset(send) for send in bench.sent(effects)] == [40]


def test_late_refusal_of_the_same_leader_starts_no_second_fetch() -> None:
    """Two fetches in flight append a batch twice. Up to 1.1.1 late answers count (KAFKA-7786); refusals do not."""
    bench, effects = following("kip101", log_of((0, 3)), high_watermark=3)
    (first,) = bench.sent(effects)
    bench.command(leader=3, epoch=7)
    (second,) = bench.sent(bench.command(leader=2, epoch=8))
    assert [] == bench.sent(bench.answer(epoch_answer(-1, error=ErrorCode.UNKNOWN_LEADER_EPOCH), to=first))
    fetch = bench.sent(bench.answer(epoch_answer(3), to=second))
    assert [3] == [fetch_offset(send) for send in fetch]
    assert [] == bench.sent(bench.pass_ms(2_000))
