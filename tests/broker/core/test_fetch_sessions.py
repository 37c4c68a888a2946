"""
A leader's fetch sessions: what they keep, what their answers leave out, and when they end.

Source:  KIP-227; Kafka's FetchSessionTest and FetchRequestTest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core.events import Effect
from targets.broker.core.messages import (
    ErrorCode,
    FetchRequest,
    FetchResponse,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.sessions import epoch_after
from targets.broker.limits import Limits
from tests.broker.core.asks import fetch, produce
from tests.broker.core.bench import Bench, answers, batch, log_of, recovery
from tests.broker.core.stage import rules_of

A, B, C = (TopicPartition("t", 7), TopicPartition("u", 0), TopicPartition("v", 0))
BLIND, FENCED = "kip320", "kip380"
NOT_FOUND, WRONG_EPOCH = ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH
INT_MAX = 2**31 - 1


def leader(
    protocol: str = FENCED, *, epoch: int = 5, tps: Sequence[TopicPartition] = (A, B, C), **settings: Any
) -> Bench:
    """Return broker 1, which leads all of these partitions in one epoch, with a record each; 2 follows."""
    bench = Bench(protocol, **settings)
    logs = [log_of((epoch, 1), tp=tp) for tp in tps]
    bench.start(*[(log, recovery(log, high_watermark=0)) for log in logs])
    for tp in tps:
        bench.command(leader=1, epoch=epoch, tp=tp)
    return bench


def answer(effects: Sequence[Effect]) -> FetchResponse:
    """Return the only answer to a fetch."""
    (found,) = [each for each in answers(effects) if isinstance(each, FetchResponse)]
    return found


def told(effects: Sequence[Effect]) -> list[TopicPartition]:
    """Return the partitions that the only answer names."""
    return [result.tp for result in answer(effects).results]


def first(
    offset: int = 1, *, tps: Sequence[TopicPartition] = (A, B, C), replica: int = 2, **values: Any
) -> FetchRequest:
    """Return a fetch that begins a session."""
    return replace(fetch(offset, replica=replica, tps=tps, epoch=5), session_epoch=0, **values)


def begun(bench: Bench, offset: int = 1, **values: Any) -> int:
    """Begin a session, and return its id."""
    return answer(bench.request(first(offset, **values))).session_id


def then(number: int, epoch: int, *named: TopicPartition, offset: int = 1, **values: Any) -> FetchRequest:
    """Return a fetch that goes on with a session."""
    wait_ms, current = values.pop("wait_ms", 0), values.pop("current", 5)
    request = fetch(offset, replica=values.pop("replica", 2), tps=named, epoch=current, wait_ms=wait_ms)
    return replace(request, session_id=number, session_epoch=epoch, **values)


# --- what an answer leaves out -------------------------------------------------------------------------------
def test_first_answer_names_all_and_the_next_only_what_has_news() -> None:
    """Source: KIP-227: FetchResponse of an incremental fetch; FetchSessionTest.testNewSessionRequest."""
    bench = leader()
    begins = answer(bench.request(first()))
    assert ([A, B, C], True) == ([result.tp for result in begins.results], begins.session_id > 0)
    bench.request(produce(batch(), tp=B))
    (found,) = answer(bench.request(then(begins.session_id, 1))).results
    assert (B, 1) == (found.tp, len(found.batches))


def test_answer_of_three_hundred_partitions_without_news_names_none() -> None:
    """Source: KIP-227, Motivation: a fetch and its answer grew with the partitions, whatever happened in them."""
    many = [TopicPartition("many", number) for number in range(300)]
    bench = leader(tps=many)
    number = begun(bench, tps=many)
    assert FetchResponse(results=(), session_id=number) == answer(bench.request(then(number, 1)))


def test_high_watermark_and_log_start_that_moved_are_news_once() -> None:
    """Source: FetchSession.CachedPartition.maybeUpdateResponseData."""
    bench = leader()
    number = begun(bench, tps=(A, B), replica=-1)
    bench.request(fetch(1, replica=2, tps=(A,), epoch=5))  # 2 has all of A, which moves the high watermark
    moved = answer(bench.request(then(number, 1, replica=-1))).results
    assert [(A, 1)] == [(result.tp, result.high_watermark) for result in moved]
    assert [] == told(bench.request(then(number, 2, replica=-1)))
    bench.request(fetch(1, replica=2, tps=(B,), epoch=5))
    assert [B] == told(bench.request(then(number, 3, replica=-1)))
    bench.broker.state.replicas[B].log.advance_start(1)
    assert [B] == told(bench.request(then(number, 4, replica=-1)))
    assert [] == told(bench.request(then(number, 5, replica=-1)))


def test_error_is_told_each_time_and_so_is_its_end() -> None:
    """Source: FetchSession.CachedPartition.maybeUpdateResponseData: an error is sent each time."""
    bench = leader()
    number = begun(bench)
    bench.command(leader=2, epoch=6, tp=B)
    for epoch in (1, 2):
        (refused,) = answer(bench.request(then(number, epoch))).results
        assert (B, ErrorCode.FENCED_LEADER_EPOCH) == (refused.tp, refused.error)
    bench.command(leader=1, epoch=7, tp=B)
    (well,) = answer(bench.request(then(number, 3, B, current=7))).results
    assert (B, ErrorCode.NONE) == (well.tp, well.error)


def test_fetch_waits_for_news_of_partitions_that_it_does_not_name() -> None:
    bench = leader()
    number = begun(bench)
    assert [] == answers(bench.request(then(number, 1, wait_ms=500)))
    assert [C] == told(bench.request(produce(batch(), tp=C)))


def test_fetch_without_news_is_answered_when_its_wait_is_over() -> None:
    bench = leader()
    number = begun(bench)
    bench.request(then(number, 1, wait_ms=500))
    assert [] == answers(bench.pass_ms(499))
    assert [] == told(bench.pass_ms(1))


def test_whoever_was_given_records_has_its_turn_after_all_others() -> None:
    """Source: FetchSession.PartitionIterator: else an answer that is full starves whoever is last."""
    bench = leader()
    number = begun(bench)
    for tp in (A, B, C):
        bench.request(produce(batch(), tp=tp))
    small = {"max_bytes": 1}
    turns = [told(bench.request(then(number, 1, **small)))]
    turns.append(told(bench.request(then(number, 2, **small))))
    assert [[A], [B]] == turns


# --- what a session keeps ------------------------------------------------------------------------------------
def test_partition_that_is_not_named_is_fetched_where_it_was() -> None:
    bench = leader()
    number = begun(bench)
    bench.request(produce(batch(), tp=A))
    assert [A] == told(bench.request(then(number, 1)))
    assert [A] == told(bench.request(then(number, 2)))  # it was not told of another offset
    (moved,) = answer(bench.request(then(number, 3, A, offset=2))).results  # it has them all
    assert (A, (), 2) == (moved.tp, moved.batches, moved.high_watermark)
    assert [] == told(bench.request(then(number, 4)))


def test_fetch_of_a_session_acknowledges_in_all_its_partitions() -> None:
    """Source: Kafka's ReplicaManager.updateFollowerFetchState: for each partition that was read, named or not."""
    bench = leader(replica_lag_ms_max=1_000)
    number = begun(bench)
    bench.now_ns += 900_000_000
    bench.request(then(number, 1, A))
    progress = [bench.broker.state.replicas[tp].progress[2].last_fetch_ns for tp in (A, B, C)]
    assert [bench.now_ns] * 3 == progress


def test_partition_that_joins_is_told_and_one_that_leaves_is_not_read() -> None:
    """Source: FetchSessionTest.testIncrementalFetchSession."""
    bench = leader()
    number = begun(bench, tps=(A, B))
    assert [C] == told(bench.request(then(number, 1, C, forgotten=(A,))))
    for tp in (A, B):
        bench.request(produce(batch(), tp=tp))
    assert [B] == told(bench.request(then(number, 2)))


def test_stopped_replica_is_an_error_in_a_session() -> None:
    bench = leader()
    number = begun(bench)
    stop = StopReplicaRequest(
        controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=(StopReplica(tp=A),)
    )
    bench.request(stop)
    assert [A] == told(bench.request(then(number, 1)))


# --- fences --------------------------------------------------------------------------------------------------
def test_epoch_is_checked_with_every_fetch_of_a_session() -> None:
    """Source: KAFKA-9338; Kafka FetchRequestTest.testEpochValidationWithinFetchSession."""
    bench = leader()
    number = begun(bench)
    bench.command(leader=1, epoch=6, tp=B)
    bench.command(leader=1, epoch=6, tp=C)
    errors = {result.tp: result.error for result in answer(bench.request(then(number, 1, C, current=7))).results}
    assert {B: ErrorCode.FENCED_LEADER_EPOCH, C: ErrorCode.UNKNOWN_LEADER_EPOCH} == errors


def test_blind_session_checks_the_epochs_of_the_fetch_that_begins_it_and_no_other() -> None:
    """Source: KAFKA-9338: "no validation would be done except for the initial (full) fetch request"."""
    bench = leader(BLIND)
    assert [ErrorCode.FENCED_LEADER_EPOCH] == [
        result.error
        for result in answer(
            bench.request(replace(fetch(1, replica=2, tps=(A,), epoch=4), session_epoch=0))
        ).results
    ]
    number = begun(bench)
    bench.command(leader=1, epoch=6, tp=B)
    bench.request(produce(batch(), tp=B))
    (found,) = answer(bench.request(then(number, 1, B, current=4))).results
    assert (ErrorCode.NONE, 1) == (found.error, len(found.batches))


# --- ids, epochs, ends ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("epoch", [2, 3, INT_MAX, -2])
def test_fetch_out_of_step_is_refused_counts_for_nothing_and_ends_nothing(epoch: int) -> None:
    """Source: KIP-227, INVALID_FETCH_SESSION_EPOCH; FetchSessionTest."""
    bench = leader()
    number = begun(bench, 0)
    refused = answer(bench.request(then(number, epoch, A, B, C, offset=1)))
    assert (WRONG_EPOCH, (), 0) == (refused.error, refused.results, refused.session_id)
    assert bench.broker.state.replicas[A].high_watermark == 0
    assert ErrorCode.NONE is answer(bench.request(then(number, 1))).error


def test_fetch_of_an_unknown_session_is_refused_and_counts_for_nothing() -> None:
    """Source: KIP-227, FETCH_SESSION_ID_NOT_FOUND."""
    bench = leader()
    refused = answer(bench.request(then(123, 1, A, offset=1)))
    assert (NOT_FOUND, ()) == (refused.error, refused.results)
    assert bench.broker.state.replicas[A].high_watermark == 0


@pytest.mark.parametrize(("epoch", "goes_on"), [(-1, False), (0, True)])
def test_full_fetch_ends_the_session_that_it_names(epoch: int, goes_on: bool) -> None:
    """Source: KIP-227: epoch -1 closes a session, 0 begins another in its place."""
    bench = leader()
    number = begun(bench)
    found = answer(bench.request(then(number, epoch, A, B)))
    assert ([A, B], goes_on) == ([result.tp for result in found.results], found.session_id not in (0, number))
    assert NOT_FOUND is answer(bench.request(then(number, 1))).error


def test_session_without_partitions_ends() -> None:
    """Source: Kafka's FetchManager.newContext: a session that becomes empty is closed."""
    bench = leader()
    number = begun(bench, tps=(A,))
    assert 0 == answer(bench.request(then(number, 1, forgotten=(A,)))).session_id
    assert NOT_FOUND is answer(bench.request(then(number, 2))).error
    assert 0 == answer(bench.request(first(tps=()))).session_id


def test_fetch_that_outlives_its_session_is_answered_in_full() -> None:
    bench = leader()
    number = begun(bench)
    bench.request(then(number, 1, wait_ms=500))
    assert answer(bench.request(then(number, -1, A))).session_id == 0
    whole = answer(bench.request(produce(batch(), tp=B)))
    assert ([A, B, C], 0) == ([result.tp for result in whole.results], whole.session_id)


def test_epochs_of_a_session_begin_again_at_one() -> None:
    """Source: Kafka's FetchMetadata.nextEpoch: 0 and -1 have meanings of their own."""
    assert (1, 2, INT_MAX, 1) == tuple(map(epoch_after, (0, 1, INT_MAX - 1, INT_MAX)))
    bench = leader()
    number = begun(bench)
    bench.broker.state.sessions.by_id[number].epoch = INT_MAX
    assert ErrorCode.NONE is answer(bench.request(then(number, INT_MAX))).error
    assert ErrorCode.NONE is answer(bench.request(then(number, 1))).error


def test_no_two_lives_of_a_broker_give_the_same_id() -> None:
    """Or a follower that missed the restart would go on with another's session."""
    ids: list[int] = []
    for registration in range(1, 50):
        bench = leader()
        bench.broker.state.registration = registration
        ids += [begun(bench) for _ in range(20)]
    assert len(ids) == len(set(ids))
    assert all(0 < number <= INT_MAX for number in ids)


def test_broker_that_does_not_know_its_registration_begins_no_session() -> None:
    bench = leader()
    bench.broker.state.registration = 0
    assert 0 == begun(bench)


@pytest.mark.parametrize("protocol", [name for name, rules in PROTOCOLS.items() if rules.fetch_sessions == "none"])
def test_leader_without_sessions_says_so(protocol: str) -> None:
    """Source: KIP-227: the session id 0, and FETCH_SESSION_ID_NOT_FOUND for whoever goes on."""
    bench = leader(protocol)
    assert 0 == begun(bench)
    assert NOT_FOUND is answer(bench.request(then(5, 1))).error


# --- how many there may be -----------------------------------------------------------------------------------
def room(slots: int) -> dict[str, Any]:
    return {"limits": Limits(fetch_sessions_max=slots)}


def test_consumer_beyond_the_limit_has_no_session_and_a_follower_takes_a_consumers_place() -> None:
    """Source: KIP-227, Fetch Session Caching: followers have priority."""
    bench = leader(**room(2))
    consumers = [begun(bench, replica=-1) for _ in range(3)]
    assert [True, True, False] == [bool(number) for number in consumers]
    follower = begun(bench)
    assert [follower, consumers[1]] == sorted(bench.broker.state.sessions.by_id, reverse=True)
    assert begun(bench) and not begun(bench)  # the other consumer's place, and none is left but followers'


def test_session_that_was_used_gives_way_after_one_that_was_not() -> None:
    bench = leader(**room(2))
    old, used = begun(bench, replica=-1), begun(bench, replica=-1)
    bench.request(then(old, 1, replica=-1))
    begun(bench)
    assert NOT_FOUND is answer(bench.request(then(used, 1, replica=-1))).error
    assert ErrorCode.NONE is answer(bench.request(then(old, 2, replica=-1))).error


@pytest.mark.parametrize(("ms", "gives_way"), [(120_000, False), (120_001, True)])
def test_session_not_used_for_two_minutes_gives_way_to_any(ms: int, gives_way: bool) -> None:
    """Source: Kafka's FetchSessionCache.tryEvict, MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""
    bench = leader(**room(1))
    begun(bench)
    bench.now_ns += ms * 1_000_000
    assert gives_way == bool(begun(bench, replica=-1))


def test_session_that_grows_past_what_a_request_may_name_ends() -> None:
    """Or one client could fill the memory, a request at a time."""
    bench = leader(limits=Limits(request_items_max=2))
    number = begun(bench, tps=(A, B))
    assert NOT_FOUND is answer(bench.request(then(number, 1, C))).error
    assert {} == bench.broker.state.sessions.by_id


def test_rule_alone_decides_whether_there_are_sessions() -> None:
    assert 0 < begun(leader(rules_of("kip101", "fetch_sessions=fenced")))
    assert 0 == begun(leader(rules_of("kip380", "fetch_sessions=none")))
