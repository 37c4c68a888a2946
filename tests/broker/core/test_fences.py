"""
The fences of KIP-320 on both sides: the leader's checks of requests, and a refused follower's reaction.

O, R and I number Kafka's own cases. The leader here is broker 1 in epoch 5; "none" is a request without an epoch.
"""

from __future__ import annotations

import pytest

from targets.broker.core.messages import ErrorCode, FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from targets.broker.core.rules import PROTOCOLS, with_rule
from targets.broker.core.state import Phase
from tests.broker.core.asks import (
    ends_at,
    epoch_ends,
    epoch_question,
    fetch,
    fetch_answer,
    fetched,
    lead,
    leading,
    list_offsets,
    listed,
    registered,
)
from tests.broker.core.bench import Bench, batch, log_of, recovery

OK = ErrorCode.NONE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED, UNKNOWN = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
FENCING = ("kip320", "kip380")
UNFENCED = tuple(name for name in PROTOCOLS if name not in FENCING)
# by the epoch in the request: none, the broker's own, an older one, a newer one
CURRENT = (-1, 5, 4, 6)
ON_LEADER = (OK, OK, FENCED, UNKNOWN)
ON_FOLLOWER = (NOT_LEADER, NOT_LEADER, FENCED, UNKNOWN)


def broker(protocol: str, *, leads: bool) -> Bench:
    """Return broker 1 in epoch 5, with three records of that epoch."""
    bench = leading(protocol, (5, 3), epoch=5 if leads else 4)
    if not leads:
        bench.command(leader=2, epoch=5)
    return bench


# --- which requests are answered -----------------------------------------------------------------------------
@pytest.mark.parametrize(("current", "expected"), list(zip(CURRENT, ON_LEADER, strict=True)))
@pytest.mark.parametrize("protocol", FENCING)
def test_o5_o9_leader_refuses_who_names_another_epoch(protocol: str, current: int, expected: ErrorCode) -> None:
    """
    Source:  Kafka OffsetsForLeaderEpochRequestTest, testCurrentEpochValidation (O5); PartitionTest,
             testLeaderEpochValidationOnLeader (O9), testFetchOffsetSnapshotEpochValidationForLeader (O8).
    """
    bench = broker(protocol, leads=True)
    end = (5, 3) if expected is OK else (-1, -1)
    assert [(expected, *end)] == epoch_ends(bench.request(epoch_question(5, current=current)))
    for follower in (-1, 2):
        (result,) = fetched(bench.request(fetch(0, replica=follower, epoch=current)))
        assert (expected, expected is OK) == (result.error, result.high_watermark >= 0)
        assert [expected] == [error for error, _ in listed(bench.request(list_offsets(-1, current=current)))]


@pytest.mark.parametrize(("current", "expected"), list(zip(CURRENT, ON_FOLLOWER, strict=True)))
@pytest.mark.parametrize("protocol", FENCING)
def test_o6_follower_tells_of_the_epoch_before_it_tells_that_it_does_not_lead(
    protocol: str, current: int, expected: ErrorCode
) -> None:
    """
    Source:  Kafka OffsetsForLeaderEpochRequestTest, testCurrentEpochValidation on a follower (O6), and the same of
             offset snapshots (O8): a broker that is behind must learn that it is behind (FENCED), not that it
             should look for another leader.
    """
    bench = broker(protocol, leads=False)
    assert [(expected, -1, -1)] == epoch_ends(bench.request(epoch_question(5, current=current)))
    assert [expected] == [result.error for result in fetched(bench.request(fetch(0, replica=2, epoch=current)))]
    assert [(expected, -1)] == listed(bench.request(list_offsets(-1, current=current)))


@pytest.mark.parametrize("current", CURRENT)
@pytest.mark.parametrize("protocol", UNFENCED)
def test_any_epoch_is_answered_where_nothing_is_fenced(protocol: str, current: int) -> None:
    """Source: Kafka to 2.0: these requests carry no epoch of the asker; one sent by a newer broker is ignored."""
    bench = broker(protocol, leads=True)
    assert [OK] == [error for error, _, _ in epoch_ends(bench.request(epoch_question(5, current=current)))]
    assert [OK] == [result.error for result in fetched(bench.request(fetch(0, replica=2, epoch=current)))]
    follows = broker(protocol, leads=False)
    assert [(NOT_LEADER, -1, -1)] == epoch_ends(follows.request(epoch_question(5, current=current)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_follower_names_its_epoch_only_where_a_leader_heeds_it(protocol: str) -> None:
    """Source: KIP-320: OffsetForLeaderEpoch v2, Fetch v9 and ListOffsets v4 carry the current leader epoch."""
    bench = Bench(protocol)
    log = log_of((0, 2))
    bench.start((log, recovery(log, high_watermark=2)))
    bench.command(leader=2, epoch=7)
    if PROTOCOLS[protocol].epochs:
        bench.answer(ends_at(2, epoch=0))
    bench.answer(fetch_answer(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    named = {
        type(send.request): part.current_leader_epoch
        for send in bench.sent()
        for part in getattr(send.request, "questions", ()) or getattr(send.request, "partitions", ())
    }
    expected = 7 if protocol in FENCING else -1
    kinds = {FetchRequest, ListOffsetsRequest} | ({OffsetForLeaderEpochRequest} & named.keys())
    assert dict.fromkeys(kinds, expected) == named


@pytest.mark.parametrize("fence", ["fence_fetch", "fence_high_watermark", "fence_isr_join"])
def test_fetch_names_its_epoch_for_any_fence_that_it_may_meet(fence: str) -> None:
    rules = with_rule(PROTOCOLS["kip279-2.0.1"], f"{fence}=yes")
    bench = Bench(rules)
    (send,) = bench.sent(bench.command(leader=2, epoch=7))
    assert isinstance(send.request, FetchRequest)
    assert send.request.partitions[0].current_leader_epoch == 7


@pytest.mark.parametrize("protocol", FENCING)
def test_fetch_that_waits_is_refused_once_the_epoch_is_over(protocol: str) -> None:
    """Source: KAFKA-9338: a fetch's epoch is checked whenever it is answered, not only on arrival."""
    bench = broker(protocol, leads=True)
    assert fetched(bench.request(fetch(3, replica=2, epoch=5, wait_ms=500))) == []
    bench.command(leader=1, epoch=6)
    assert [FENCED] == [result.error for result in fetched(bench.pass_ms(500))]


# --- high watermark and ISR ------------------------------------------------------------------------------------
@pytest.mark.parametrize("counts", [True, False], ids=["mutant", "kip320"])
@pytest.mark.parametrize("current", [4, 6])
def test_i12_refused_fetch_leaves_what_is_known_of_the_follower_by_rule(current: int, counts: bool) -> None:
    """Source: Kafka PartitionTest, testFollowerStateNotUpdatedIfLogReadFails (I12); KAFKA-8400."""
    rules = with_rule(PROTOCOLS["kip320"], f"fence_high_watermark={'no' if counts else 'yes'}")
    bench = leading(rules, (5, 6), epoch=5)
    bench.request(fetch(0, replica=2, epoch=5))
    results = fetched(bench.request(fetch(3, replica=2, epoch=current)))
    assert [FENCED if current == 4 else UNKNOWN] == [result.error for result in results]
    assert ((3, 3) if counts else (0, 0)) == (bench.replica.progress[2].end, bench.replica.high_watermark)


@pytest.mark.parametrize("joins", [True, False], ids=["mutant", "kip320"])
def test_refused_fetch_lets_its_follower_into_the_isr_by_rule(joins: bool) -> None:
    """Source: KIP-320: only a follower in the leader's epoch may join."""
    bench = registered(with_rule(PROTOCOLS["kip320"], f"fence_isr_join={'no' if joins else 'yes'}"))
    lead(bench, epoch=5, isr=(1,))
    bench.request(fetch(0, replica=2, epoch=4))
    assert ((1, 2) if joins else (1,)) == bench.zk.state().isr
    bench.request(fetch(0, replica=2, epoch=5))
    assert bench.zk.state().isr == (1, 2)


@pytest.mark.parametrize("protocol", FENCING)
def test_follower_that_names_no_epoch_is_counted(protocol: str) -> None:
    """Source: KIP-320, compatibility: brokers that do not know the fence take part during a cluster's upgrade."""
    bench = leading(protocol, (5, 6), epoch=5)
    bench.request(fetch(3, replica=2))
    assert bench.replica.high_watermark == 3


# --- refused followers -----------------------------------------------------------------------------------------
def asking(protocol: str) -> Bench:
    """Return broker 1 with two records of epoch 0, told to follow broker 2 in epoch 1, its epoch request sent."""
    bench = Bench(protocol)
    log = log_of((0, 1), (0, 1))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=1)
    return bench


def fetching(protocol: str) -> Bench:
    """Return the same broker after its answer, which truncated nothing; it fetches at 2."""
    bench = asking(protocol)
    bench.answer(ends_at(2, epoch=0))
    assert (bench.replica.phase, bench.replica.log.end_offset) == (Phase.FETCHING, 2)
    return bench


@pytest.mark.parametrize("protocol", FENCING)
def test_r1_follower_fenced_while_it_asks_waits_for_a_command(protocol: str) -> None:
    """Source: Kafka AbstractFetcherThreadTest, testFencedTruncation (R1): no truncation and no fetch."""
    bench = asking(protocol)
    effects = bench.answer(ends_at(-1, error=FENCED))
    assert [(1, 2)] == [(seen["epoch"], seen["leader"]) for seen in bench.observed("fenced", effects)]
    assert (Phase.FENCED, 2, []) == (bench.replica.phase, bench.replica.log.end_offset, bench.observed("truncate"))
    assert bench.sent(bench.pass_ms(60_000)) == []
    assert len(bench.sent(bench.command(leader=2, epoch=2))) == 1


@pytest.mark.parametrize("protocol", FENCING)
def test_r2_follower_fenced_while_it_fetches_waits_for_a_command(protocol: str) -> None:
    """Source: Kafka AbstractFetcherThreadTest, testFencedFetch (R2); KIP-320: "await a new LeaderAndIsr"."""
    bench = fetching(protocol)
    bench.answer(fetch_answer(error=FENCED))
    assert (bench.replica.phase, len(bench.observed("fenced"))) == (Phase.FENCED, 1)
    assert bench.sent(bench.pass_ms(60_000)) == []
    assert isinstance(bench.sent(bench.command(leader=2, epoch=2))[0].request, OffsetForLeaderEpochRequest)


def test_follower_fenced_in_an_epoch_that_is_over_asks_again_at_once() -> None:
    """Source: Kafka, AbstractFetcherThread: error 74 for an older epoch than the fetcher's own is no failure."""
    bench = Bench(with_rule(PROTOCOLS["kip320"], "truncate_when_leader_unchanged=no"))
    bench.command(leader=2, epoch=1)
    late = bench.sent()[-1]
    bench.command(leader=2, epoch=2)
    again = bench.sent(bench.answer(fetch_answer(error=FENCED), to=late))
    assert [FetchRequest] == [type(send.request) for send in again]
    assert bench.replica.phase is Phase.FETCHING


def test_fenced_follower_begins_anew_though_the_same_leader_leads_on() -> None:
    """Source: KIP-320: it has stopped fetching, so it must start over, even where KAFKA-7164 would continue."""
    bench = Bench(with_rule(PROTOCOLS["kip320"], "truncate_when_leader_unchanged=no"))
    log = log_of((0, 1), (0, 1))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=1)
    bench.answer(ends_at(2, epoch=0))
    bench.answer(fetch_answer(error=FENCED))
    (again,) = bench.sent(bench.command(leader=2, epoch=2))
    assert isinstance(again.request, OffsetForLeaderEpochRequest)


@pytest.mark.parametrize("protocol", FENCING)
def test_r3_follower_ahead_of_its_leader_goes_on_asking(protocol: str) -> None:
    """Source: Kafka AbstractFetcherThreadTest, testUnknownLeaderEpochInTruncation (R3)."""
    bench = asking(protocol)
    for _ in range(3):
        bench.answer(ends_at(-1, error=UNKNOWN))
        assert bench.replica.phase is Phase.TRUNCATING
        assert len(bench.sent(bench.pass_ms(1_000))) == 1
    bench.answer(ends_at(1, epoch=0))
    assert (bench.replica.phase, bench.replica.log.end_offset) == (Phase.FETCHING, 1)


@pytest.mark.parametrize("protocol", FENCING)
def test_r4_follower_ahead_of_its_leader_goes_on_fetching(protocol: str) -> None:
    """Source: Kafka AbstractFetcherThreadTest, testUnknownLeaderEpochWhileFetching (R4)."""
    bench = fetching(protocol)
    bench.answer(fetch_answer(error=UNKNOWN))
    assert (bench.replica.phase, len(bench.sent(bench.pass_ms(1_000)))) == (Phase.FETCHING, 1)
    bench.answer(fetch_answer(batch(1, base=2, epoch=1)))
    assert bench.replica.log.end_offset == 3


@pytest.mark.parametrize("error", [FENCED, OK], ids=["R5 refused", "R6 answered"])
@pytest.mark.parametrize("protocol", ["kip279-2.0.1", *FENCING])
def test_r5_r6_answer_that_an_epoch_overtook_is_dropped(protocol: str, error: ErrorCode) -> None:
    """
    Source:  Kafka AbstractFetcherThreadTest, testLeaderEpochChangeDuringFencedFetchEpochsFromLeader (R5) and
             testLeaderEpochChangeDuringSuccessfulFetchEpochsFromLeader (R6): it asks again in the new epoch.
    """
    bench = asking(protocol)
    late = bench.sent()[-1]
    (again,) = bench.sent(bench.command(leader=2, epoch=2))
    assert bench.answer(ends_at(1 if error is OK else -1, epoch=0, error=error), to=late) == []
    assert (bench.replica.phase, bench.replica.log.end_offset) == (Phase.TRUNCATING, 2)
    bench.answer(ends_at(2, epoch=0), to=again)
    assert (bench.replica.phase, bench.replica.log.end_offset) == (Phase.FETCHING, 2)


def test_r6_answer_that_an_epoch_of_the_same_leader_overtook_is_asked_for_anew_in_2_0_0() -> None:
    """
    Source:  KAFKA-7786, fixed in 2.0.0, where a follower of the same leader does not start over (KAFKA-7164): it
             has sent no request in the new epoch yet, so dropping the answer alone would leave it waiting.
    """
    bench = asking("kip279")
    late = bench.sent()[-1]
    assert bench.sent(bench.command(leader=2, epoch=2)) == []
    (again,) = bench.sent(bench.answer(ends_at(1, epoch=0), to=late))
    assert bench.replica.log.end_offset == 2
    bench.answer(ends_at(1, epoch=0), to=again)
    assert (bench.replica.phase, bench.replica.log.end_offset) == (Phase.FETCHING, 1)
