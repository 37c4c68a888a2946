"""
One Fetch and one question for each leader, whatever the number of partitions.

Source:  Kafka's AbstractFetcherThread: one thread, one connection and one Fetch for each pair of brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from targets.broker.core import fetches
from targets.broker.core.events import Caller, Received, Send
from targets.broker.core.log_port import Damaged
from targets.broker.core.messages import (
    EpochAnswer,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResult,
    OffsetForLeaderEpochResponse,
    StopReplica,
    StopReplicaRequest,
    TopicPartition,
)
from targets.broker.core.rounds import FETCHES, QUESTIONS
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Together
from tests.broker.core.asks import asked, fetch, fetched, fetched_at, follow_all, given, named, produce
from tests.broker.core.bench import Bench, MemoryLog, batch, log_of, recovery

A, B, C, D, E = (TopicPartition(topic, number) for topic, number in zip("tuvtu", (0, 0, 0, 1, 1), strict=True))
WITH_EPOCHS = [name for name, rules in PROTOCOLS.items() if rules.epochs]


def following(
    protocol: str, *tps: TopicPartition, spans: Sequence[tuple[int, int]] = (), **settings: Any
) -> tuple[Bench, list[Send]]:
    """Return broker 1, told to follow broker 2 in epoch 6 in all of these partitions, and what it then sends."""
    bench = Bench(protocol, **settings)
    logs = [log_of(*spans, tp=tp) for tp in tps]
    bench.start(*[(log, recovery(log, high_watermark=log.end_offset)) for log in logs])
    return bench, bench.sent(bench.request(follow_all(tps, epoch=6)))


def ends(send: Send, end: int, epoch: int) -> OffsetForLeaderEpochResponse:
    """Return the answer that this epoch ends there in every partition that was asked for."""
    answers = [EpochAnswer(tp=tp, error=ErrorCode.NONE, leader_epoch=epoch, end_offset=end) for tp in named(send)]
    return OffsetForLeaderEpochResponse(answers=tuple(answers))


def nothing(send: Send) -> FetchResponse:
    """Return the answer that there are no records."""
    return FetchResponse(results=tuple(given(tp) for tp in named(send)))


def bounds(send: Send, offset: int) -> ListOffsetsResponse:
    """Return the answer that the bound asked for is the same in every partition."""
    results = [ListOffsetsResult(tp=tp, error=ErrorCode.NONE, offset=offset) for tp in named(send)]
    return ListOffsetsResponse(results=tuple(results))


def wait_of(send: Send) -> int:
    assert isinstance(send.request, FetchRequest)
    return send.request.max_wait_ms


# --- one request ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_partitions_of_one_leader_ask_and_fetch_together(protocol: str) -> None:
    """Source: Kafka Replication Design V3, discussion 8."""
    bench, (question,) = following(protocol, A, B, C, spans=[(5, 3)])
    assert (named(question), asked([question]), question.channel) == ([A, B, C], [5, 5, 5], QUESTIONS)
    (send,) = bench.sent(bench.answer(ends(question, 3, 5)))
    assert (named(send), fetched_at([send]), send.channel) == ([A, B, C], [3, 3, 3], FETCHES)


def test_each_leader_has_requests_of_its_own() -> None:
    bench, (first,) = following("hw", A, B)
    other = bench.command(leader=3, epoch=7, replicas=(1, 2, 3), tp=B)
    (second,) = bench.sent(other)
    assert [(first.to, named(first)), (second.to, named(second))] == [(2, [A, B]), (3, [B])]


def test_who_is_ready_meanwhile_joins_the_next_request() -> None:
    bench, (send,) = following("hw", A, B)
    assert bench.sent(bench.request(follow_all([C, D], epoch=6))) == []
    (after,) = bench.sent(bench.answer(nothing(send), to=send))
    assert named(after) == [C, D, A, B]


def test_partition_that_lacks_its_part_of_an_answer_waits_alone() -> None:
    bench, (send,) = following("hw", A, B)
    (after,) = bench.sent(bench.answer(FetchResponse(results=(given(B),)), to=send))
    assert named(after) == [B]


def test_partitions_of_a_lost_connection_ask_together_after_the_back_off() -> None:
    bench, (send,) = following("hw", A, B, C)
    assert bench.sent(bench.answer(None, to=send)) == []
    assert bench.sent(bench.pass_ms(999)) == []
    (again,) = bench.sent(bench.pass_ms(1))
    assert named(again) == [A, B, C]


def test_leader_that_does_not_answer_is_asked_once_in_a_back_off_whatever_the_number_of_partitions() -> None:
    """Else all partitions of a dead broker would ask again in each back-off, while others are elected."""
    bench, (send,) = following("hw", A, B, C, D, E, together=Together(asks_max=2))
    turns = [named(send)]
    for _ in range(3):
        assert bench.sent(bench.answer(None, to=send)) == []
        assert bench.sent(bench.pass_ms(999)) == []
        (send,) = bench.sent(bench.pass_ms(1))
        turns.append(named(send))
    assert turns == [[A, B], [C, D], [E, A], [B, C]]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_questions_without_an_answer_rest_together_too(protocol: str) -> None:
    bench, (question,) = following(protocol, A, B, C, spans=[(5, 3)], together=Together(asks_max=2))
    assert bench.sent(bench.answer(None, to=question)) == []
    (again,) = bench.sent(bench.pass_ms(1_000))
    assert (named(question), named(again), again.channel) == ([A, B], [C, A], QUESTIONS)


def test_command_to_follow_ends_the_rest_of_that_leader_and_of_no_other() -> None:
    """The controller knows that it is there again, and a returning leader is waited for."""
    bench, (send,) = following("hw", A, B)
    bench.answer(None, to=send)
    (other,) = bench.sent(bench.command(leader=3, epoch=7, replicas=(1, 2, 3), tp=C))
    assert (other.to, named(other)) == (3, [C])
    (again,) = bench.sent(bench.request(follow_all([D], epoch=6)))
    assert (again.to, named(again)) == (2, [A, B, D])


def test_of_partitions_that_were_told_otherwise_during_a_rest_nothing_is_kept() -> None:
    bench, (send,) = following("hw", A, B, C, together=Together(asks_max=1))
    bench.answer(None, to=send)
    for tp in (A, B, C):
        bench.command(leader=1, epoch=7, tp=tp)
    assert bench.sent(bench.pass_ms(1_000)) == []
    assert bench.broker.state.fetchers == {}


def test_out_of_range_partitions_ask_for_their_bounds_together_and_then_all_fetch() -> None:
    """A Fetch of C alone would wait for C's records, and a leader that deletes what A is to copy would go on."""
    bench, (send,) = following("hw", A, B, C, spans=[(-1, 4)])
    out = [given(tp, error=ErrorCode.OFFSET_OUT_OF_RANGE) for tp in (A, B)]
    (question,) = bench.sent(bench.answer(FetchResponse(results=(*out, given(C))), to=send))
    assert isinstance(question.request, ListOffsetsRequest)
    assert (named(question), question.channel) == ([A, B], QUESTIONS)
    (after,) = bench.sent(bench.answer(bounds(question, 2), to=question))
    assert (named(after), fetched_at([after])) == ([C, A, B], [4, 2, 2])


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_partition_that_asks_for_its_epochs_end_loses_no_turn_to_a_fetch_of_others_that_waits(
    protocol: str,
) -> None:
    """Source: Kafka, AbstractFetcherThread.doWork: maybeTruncate comes before maybeFetch."""
    bench = Bench(protocol)
    logs = [log_of((5, 3), tp=tp) for tp in (A, B, C)]
    bench.start(*[(log, recovery(log, high_watermark=log.end_offset)) for log in logs])
    (question,) = bench.sent(bench.request(follow_all([A, B], epoch=6)))
    (send,) = bench.sent(bench.answer(ends(question, 3, 5), to=question))
    (question,) = bench.sent(bench.request(follow_all([C], epoch=6)))
    assert ([C], QUESTIONS) == (named(question), question.channel)
    assert [] == bench.sent(bench.answer(nothing(send), to=send))
    (after,) = bench.sent(bench.answer(ends(question, 3, 5), to=question))
    assert ({A, B, C}, FETCHES) == ({*named(after)}, after.channel)


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_lost_question_about_an_epochs_end_keeps_nobody_else_from_fetching(protocol: str) -> None:
    bench, (question,) = following(protocol, A, B, spans=[(5, 3)], together=Together(asks_max=1))
    (other,) = bench.sent(bench.answer(ends(question, 3, 5), to=question))
    (send,) = bench.sent(bench.answer(None, to=other))
    assert ([B], [A]) == (named(other), named(send))


def test_lost_question_about_bounds_keeps_nobody_else_from_fetching() -> None:
    bench, (send,) = following("hw", A, B, spans=[(-1, 4)])
    out = given(A, error=ErrorCode.OFFSET_OUT_OF_RANGE)
    (question,) = bench.sent(bench.answer(FetchResponse(results=(out, given(B))), to=send))
    (after,) = bench.sent(bench.answer(None, to=question))
    assert named(after) == [B]


def test_repair_does_not_wait_at_the_leader() -> None:
    bench, (send,) = following("hw", A, B, spans=[(-1, 2), (-1, 2)])
    assert wait_of(send) == 500
    replica = bench.broker.state.replicas[B]
    damaged = Damaged(offset=2, end=4, path="", position=0, what="")
    replica.damages[damaged.offset] = damaged.end
    (after,) = bench.sent(bench.answer(nothing(send), to=send))
    assert (fetched_at([after]), wait_of(after)) == ([4, 2], 0)


# --- requests that nobody awaits -----------------------------------------------------------------------------
def test_request_that_nobody_awaits_holds_up_no_other() -> None:
    bench, (send,) = following("hw", A, B)
    bench.command(leader=1, epoch=7, tp=A)
    assert bench.sent(bench.request(follow_all([A], epoch=8))) == []  # B still awaits it
    (again,) = bench.sent(bench.command(leader=1, epoch=7, tp=B))
    assert (named(again), again.channel, again.to) == ([A], FETCHES, 2)
    assert bench.sent(bench.answer(nothing(send), to=send)) == []
    assert named(bench.sent(bench.answer(nothing(again), to=again))[0]) == [A]


def test_request_of_stopped_replicas_holds_up_no_other() -> None:
    bench, _ = following("hw", A, B)
    stop = StopReplicaRequest(
        controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=(StopReplica(tp=A), StopReplica(tp=B))
    )
    bench.request(stop)
    (send,) = bench.sent(bench.request(follow_all([C], epoch=6)))
    assert named(send) == [C]


def test_partition_that_is_told_otherwise_before_its_turn_does_not_ask() -> None:
    bench, (send,) = following("hw", A)
    bench.request(follow_all([B, C, D], epoch=6))
    bench.command(leader=1, epoch=7, tp=B)
    stop = (StopReplica(tp=C),)
    bench.request(StopReplicaRequest(controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=stop))
    (after,) = bench.sent(bench.answer(nothing(send), to=send))
    assert named(after) == [D, A]


@pytest.mark.parametrize("protocol", ["kip279-2.0.1", "kip320", "kip380"])
def test_question_goes_behind_a_fetch_of_the_same_partition(protocol: str) -> None:
    """Or its old fetch might arrive when it has cut its log, and the leader would take it for having that."""
    bench, (question,) = following(protocol, A, B, spans=[(5, 3)])
    (send,) = bench.sent(bench.answer(ends(question, 3, 5), to=question))
    (behind,) = bench.sent(bench.request(follow_all([A], epoch=8)))
    assert (named(behind), behind.channel) == ([A], FETCHES)
    bench.answer(nothing(send), to=send)
    (question,) = bench.sent(bench.request(follow_all([A], epoch=10)))
    assert (named(question), question.channel) == ([A], QUESTIONS)


def test_nothing_is_kept_of_a_leader_that_nobody_follows() -> None:
    bench, (send,) = following("hw", A)
    bench.command(leader=1, epoch=7, tp=A)
    assert list(bench.broker.state.fetchers) == [2]  # the Fetch is in flight
    bench.answer(nothing(send), to=send)
    assert bench.broker.state.fetchers == {}


# --- turns ---------------------------------------------------------------------------------------------------
def test_request_names_so_many_partitions_and_the_others_are_next() -> None:
    bench, (send,) = following("hw", A, B, C, D, E, together=Together(asks_max=2))
    turns = [named(send)]
    for _ in range(4):
        (send,) = bench.sent(bench.answer(nothing(send), to=send))
        turns.append(named(send))
    assert turns == [[A, B], [C, D], [E, A], [B, C], [D, E]]
    assert wait_of(send) == 500 // 3  # so that all have had their turn after 500 ms


def test_turns_are_not_waited_for_while_records_come() -> None:
    """Or an acknowledgement of all of the ISR would take as long as all others wait for records."""
    bench, (send,) = following("hw", A, B, C, D, E, together=Together(asks_max=2))
    waits = [wait_of(send)]
    bench.answer(FetchResponse(results=(given(A, batch()), given(B))), to=send)
    for _ in range(4):
        send = bench.sent()[-1]
        waits.append(wait_of(send))
        bench.answer(nothing(send), to=send)
    assert waits == [166, 0, 0, 0, 166]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_question_names_so_many_partitions_and_the_others_are_next(protocol: str) -> None:
    bench, (question,) = following(protocol, A, B, C, spans=[(5, 3)], together=Together(asks_max=2))
    (other,) = bench.sent(bench.answer(ends(question, 3, 5), to=question))
    (send,) = bench.sent(bench.answer(ends(other, 3, 5), to=other))
    assert ([A, B], [C], [A, B]) == (named(question), named(other), named(send))


def test_who_was_given_records_is_asked_for_last() -> None:
    """Source: Kafka's PartitionStates.updateAndMoveToEnd."""
    bench, (send,) = following("hw", A, B, C)
    results = (given(A, batch()), given(B), given(C))
    (send,) = bench.sent(bench.answer(FetchResponse(results=results), to=send))
    assert named(send) == [B, C, A]
    results = (given(B, batch()), given(C), given(A))
    (send,) = bench.sent(bench.answer(FetchResponse(results=results), to=send))
    assert named(send) == [C, A, B]


# --- the leader ----------------------------------------------------------------------------------------------
def leading(*tps: TopicPartition, replicas: Sequence[int] = (1, 2)) -> Bench:
    """Return broker 1 as leader of ten batches of one record in each partition."""
    bench = Bench("kip101")
    logs = [log_of(*[(5, 1)] * 10, tp=tp) for tp in tps]
    bench.start(*[(log, recovery(log)) for log in logs])
    for tp in tps:
        bench.command(leader=1, epoch=5, tp=tp, replicas=replicas, isr=replicas)
    return bench


@pytest.mark.parametrize("max_bytes", [1, 61, 62, 100, 124, 200, 700, 10_000])
@pytest.mark.parametrize("empty_first", [False, True])
def test_answer_exceeds_its_size_by_the_first_batch_alone(max_bytes: int, empty_first: bool) -> None:
    """Source: KIP-74: only the first partition that has records may exceed the limits, and only by one batch."""
    tps = [A, B, C]
    bench = leading(*tps)
    request = fetch(0, replica=2, tps=tps)
    parts = list(request.partitions)
    if empty_first:
        parts[0] = fetch(10, tps=[A]).partitions[0]
    sized = FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, partitions=tuple(parts))
    found = [[item.size for item in result.batches] for result in fetched(bench.request(sized))]
    flat = [size for sizes in found for size in sizes]
    assert sum(flat) <= max_bytes or len(flat) == 1
    assert len(found[empty_first]) >= 1
    assert len(flat) == max(1, min(max_bytes // 62, 20 if empty_first else 30))


def test_partition_with_an_error_leaves_the_others_of_its_answer() -> None:
    bench = leading(A, C)
    results = fetched(bench.request(fetch(0, replica=2, wait_ms=500, tps=[A, B, C])))
    errors = {result.tp: result.error for result in results}
    assert errors == {A: ErrorCode.NONE, B: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, C: ErrorCode.NONE}
    assert [len(result.batches) for result in results] == [10, 0, 10]


def test_waiting_fetch_of_many_partitions_is_looked_at_in_those_alone_that_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader whose high watermarks all move in one step must not look at all partitions for each of them."""
    tps = [TopicPartition("t", number) for number in range(200)]
    bench = leading(*tps, replicas=(1, 2, 3))
    bench.request(fetch(10, replica=3, wait_ms=500, tps=tps))
    assert len(bench.broker.state.fetches) == 1
    looks, look = [], fetches._makes_ready
    monkeypatch.setattr(fetches, "_makes_ready", lambda *of: looks.append(of) or look(*of))
    bench.request(fetch(10, replica=2, wait_ms=500, tps=tps))
    assert [10] * 200 == [bench.broker.state.replicas[tp].high_watermark for tp in tps]
    assert len(looks) == 2 * 200  # as it comes, and where a high watermark moves the one that waits


def test_waiting_fetch_is_answered_once_all_partitions_have_enough_together() -> None:
    bench = leading(A, B)
    caller = Caller(connection=77, number=1)
    request = fetch(10, replica=2, wait_ms=500, min_bytes=180, tps=[A, B])
    assert fetched(bench.step(Received(caller=caller, request=request))) == []
    assert fetched(bench.request(produce(batch(), tp=A))) == []
    assert fetched(bench.request(produce(batch(), tp=A))) == []
    results = fetched(bench.request(produce(batch(), tp=B)))
    assert [len(result.batches) for result in results] == [2, 1]


def test_memory_log_is_as_long_as_it_says() -> None:
    log = MemoryLog(A)
    log.append_as_leader([batch()], 5)
    assert log.batches[0].size == 62  # the sizes above count on it
