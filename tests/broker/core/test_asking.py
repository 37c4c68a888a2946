"""
A follower's fetch sessions: what it asks, what it makes of what an answer leaves out, when it begins anew.

Source:  KIP-227; Kafka's FetchSessionHandlerTest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from targets.broker.core.events import Send
from targets.broker.core.messages import ErrorCode, FetchRequest, FetchResponse, FetchResult, TopicPartition
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.state import Phase, Together
from tests.broker.core.asks import follow_all, named
from tests.broker.core.bench import Bench, batch, log_of, recovery
from tests.broker.core.stage import rules_of

A, B, C = (TopicPartition("t", 7), TopicPartition("u", 0), TopicPartition("v", 0))
WITH_SESSIONS = [name for name, rules in PROTOCOLS.items() if rules.fetch_sessions != "none"]
NOT_FOUND, WRONG_EPOCH = ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH
SESSION = 44


def following(*tps: TopicPartition, protocol: Rules | str = "kip380", **settings: Any) -> tuple[Bench, Send]:
    """Return broker 1, which follows 2 in epoch 6 with empty logs, and its first fetch."""
    bench = Bench(protocol, **settings)
    bench.start(*[(log, recovery(log)) for log in [log_of(tp=tp) for tp in tps]])
    (send,) = bench.sent(bench.request(follow_all(tps, epoch=6)))
    return bench, send


def result(
    tp: TopicPartition, *batches: Any, high: int = 0, start: int = 0, error: ErrorCode = ErrorCode.NONE
) -> FetchResult:
    return FetchResult(tp=tp, error=error, high_watermark=high, log_start_offset=start, batches=batches)


def told(bench: Bench, send: Send, *results: FetchResult, session: int = SESSION) -> Send:
    """Answer a fetch, and return the next one."""
    (after,) = bench.sent(bench.answer(FetchResponse(results=results, session_id=session), to=send))
    return after


def place(send: Send) -> tuple[int, int]:
    """Return a fetch's session and its epoch."""
    assert isinstance(send.request, FetchRequest)
    return send.request.session_id, send.request.session_epoch


def begun(*tps: TopicPartition, **settings: Any) -> tuple[Bench, Send]:
    """Return a follower and its second fetch, the first that goes on with its session."""
    bench, send = following(*tps, **settings)
    return bench, told(bench, send, *map(result, tps))


# --- what is asked -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_SESSIONS)
def test_first_fetch_names_all_and_the_next_what_has_changed(protocol: str) -> None:
    """Source: FetchSessionHandlerTest.testIncrementals."""
    bench, send = following(A, B, C, protocol=protocol)
    assert ((0, 0), [A, B, C]) == (place(send), named(send))
    send = told(bench, send, result(A), result(B, batch()), result(C))
    assert ((SESSION, 1), [B]) == (place(send), named(send))
    send = told(bench, send)
    assert ((SESSION, 2), []) == (place(send), named(send))


def test_fetch_of_three_hundred_partitions_without_news_names_none() -> None:
    """Source: KIP-227, Motivation."""
    many = [TopicPartition("many", number) for number in range(300)]
    bench, send = begun(*many)
    for _ in range(3):
        assert [] == named(send)
        send = told(bench, send)
    assert [] == [tp for tp in many if bench.broker.state.replicas[tp].phase is not Phase.FETCHING]


def test_epoch_that_rose_is_a_change() -> None:
    """Source: KIP-320; Kafka's FetchRequest.PartitionData.equals: the leader must learn of it (KAFKA-9338)."""
    bench, send = begun(A, B)
    bench.request(follow_all([A], epoch=7))
    send = told(bench, send)
    assert [A] == named(send)
    assert isinstance(send.request, FetchRequest)
    assert [7] == [part.current_leader_epoch for part in send.request.partitions]


def test_who_does_not_fetch_leaves_and_who_does_again_joins() -> None:
    """Source: FetchSessionHandlerTest.testIncrementalPartitionRemoval."""
    bench, send = begun(A, B)
    send = told(bench, send, result(A, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert isinstance(send.request, FetchRequest)
    assert ([], (A,)) == (named(send), send.request.forgotten)
    assert [] == bench.sent(bench.pass_ms(1_000))  # the back-off is over, and B's fetch is on its way
    assert [A] == named(told(bench, send))


@pytest.mark.parametrize("rules", [rules_of("hw"), rules_of("kip380", "fetch_sessions=none")])
def test_follower_without_sessions_asks_in_full_each_time(rules: Rules) -> None:
    bench, send = following(A, B, protocol=rules)
    for _ in range(3):
        assert ((0, -1), [A, B]) == (place(send), named(send))
        send = told(bench, send, result(A), result(B), session=0)


# --- what an answer leaves out -------------------------------------------------------------------------------
def test_what_an_answer_leaves_out_is_as_it_was_told_last() -> None:
    """A follower whose log is shorter than it was takes the high watermark again that its leader told it."""
    bench, send = begun(A, B)
    send = told(bench, send, result(A, batch(2), high=2))
    replica = bench.broker.state.replicas[A]
    assert 2 == replica.high_watermark
    replica.high_watermark = 1
    told(bench, send)
    assert 2 == replica.high_watermark


def test_partition_that_joins_and_is_left_out_was_told_nothing() -> None:
    """It waits alone for its back-off, and the others go on."""
    bench, send = begun(A, B)
    bench.request(follow_all([C], epoch=6))
    send = told(bench, send)
    assert [C] == named(send)
    send = told(bench, send)
    assert isinstance(send.request, FetchRequest)
    assert (C,) == send.request.forgotten


def test_answer_to_a_fetch_that_was_overtaken_is_only_about_what_it_names() -> None:
    """Its session is over for the follower, which has asked for all others again."""
    bench, old = begun(A, B, protocol="kip279")
    for tp in (A, B):
        bench.command(leader=1, epoch=7, tp=tp)
    (send,) = bench.sent(bench.request(follow_all([A, B], epoch=8)))
    assert ((SESSION, 0), [A, B]) == (place(send), named(send))
    bench.answer(FetchResponse(results=(), session_id=SESSION), to=old)
    assert [] == bench.sent(bench.pass_ms(1_000))
    after = told(bench, send, result(A), result(B), session=55)
    assert ((55, 1), []) == (place(after), named(after))


# --- when it begins anew -------------------------------------------------------------------------------------
@pytest.mark.parametrize("error", [NOT_FOUND, WRONG_EPOCH])
def test_refused_follower_asks_in_full_at_once(error: ErrorCode) -> None:
    """Source: FetchSessionHandler.handleResponse; ReplicaFetcherThread.fetch: no partition backs off."""
    bench, send = begun(A, B)
    (after,) = bench.sent(bench.answer(FetchResponse(results=(), error=error), to=send))
    assert ((0, 0), [A, B]) == (place(after), named(after))


def test_lost_connection_ends_a_session() -> None:
    """Source: FetchSessionHandler.handleError."""
    bench, send = begun(A, B)
    bench.answer(None, to=send)
    (after,) = bench.sent(bench.pass_ms(1_000))
    assert ((0, 0), [A, B]) == (place(after), named(after))


def test_back_off_of_all_ends_no_session() -> None:
    """Source: Kafka's AbstractFetcherThread: it pauses, and goes on."""
    bench, send = begun(A)
    refused = result(A, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [] == bench.sent(bench.answer(FetchResponse(results=(refused,), session_id=SESSION), to=send))
    (after,) = bench.sent(bench.pass_ms(1_000))
    assert ((SESSION, 2), []) == (place(after), named(after))


def test_leader_that_begins_no_session_is_asked_in_full_again() -> None:
    """Source: KIP-227: a full cache."""
    bench, send = following(A, B)
    send = told(bench, send, result(A), result(B), session=0)
    assert ((0, 0), [A, B]) == (place(send), named(send))


def test_leader_that_ends_a_session_with_an_answer_is_asked_in_full() -> None:
    bench, send = begun(A, B)
    send = told(bench, send, result(A), result(B), session=0)
    assert ((0, 0), [A, B]) == (place(send), named(send))


def test_more_partitions_than_one_fetch_names_have_no_session() -> None:
    """Each fetch names others than the one before, so a session would save nothing."""
    bench, send = begun(A, B, together=Together(asks_max=2))
    bench.request(follow_all([C], epoch=6))
    places: list[tuple[tuple[int, int], Sequence[TopicPartition]]] = []
    for _ in range(3):
        send = told(bench, send, *map(result, [A, B, C]), session=0)
        places.append((place(send), named(send)))
    assert [((0, -1), [C, A]), ((0, -1), [B, C]), ((0, -1), [A, B])] == places


def test_repair_is_asked_for_again_after_a_refusal() -> None:
    """A refusal says nothing about the leader's batch."""
    bench, send = begun(A)
    send = told(bench, send, result(A, batch(2), high=2))
    replica = bench.broker.state.replicas[A]
    replica.damages[0] = 2
    send = told(bench, send)
    (after,) = bench.sent(bench.answer(FetchResponse(results=(), error=NOT_FOUND), to=send))
    assert isinstance(after.request, FetchRequest)
    assert [0, 0] == [part.fetch_offset for ask in (send, after) for part in ask.request.partitions]
