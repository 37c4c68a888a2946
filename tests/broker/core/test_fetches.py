"""Fetches of many: who waits is not read for, one read serves all, and one batch at most is over its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from targets.broker.core.events import Caller, Effect, Received, Tick
from targets.broker.core.messages import (
    Batch,
    ErrorCode,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    TopicPartition,
)
from targets.broker.limits import Limits
from tests.broker.core.asks import fetch, fetched, leading, produce, read
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch

OK = ErrorCode.NONE
SIZE = batch().size
WAITERS = 50


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets of all reads from a log, so far."""
    found: list[int] = []
    read_log = MemoryLog.read

    def counted(log: MemoryLog, offset: int, *asked: Any, **more: Any) -> tuple[Batch, ...]:
        found.append(offset)
        return read_log(log, offset, *asked, **more)

    monkeypatch.setattr(MemoryLog, "read", counted)
    return found


def committed(bench: Bench) -> Bench:
    """Let the follower fetch everything, so that consumers may read it."""
    bench.request(fetch(bench.replica.log.end_offset, replica=2))
    return bench


def asked(
    *partitions: FetchPartition, max_bytes: int = 1 << 30, min_bytes: int = 1, wait_ms: int = 0
) -> FetchRequest:
    return FetchRequest(
        replica_id=-1, max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, partitions=partitions
    )


def at(offset: int, max_bytes: int = 1 << 30, tp: TopicPartition = TP) -> FetchPartition:
    return FetchPartition(tp=tp, fetch_offset=offset, max_bytes=max_bytes)


def offsets(effects: Sequence[Any]) -> list[list[int]]:
    """Return the base offsets of each result's batches."""
    return [[one.base_offset for one in result.batches] for result in fetched(effects)]


# --- waiting --------------------------------------------------------------------------------------------------
def test_appends_read_nothing_for_those_who_wait_for_more(reads: list[int]) -> None:
    bench = leading()
    for _ in range(WAITERS):
        bench.request(asked(at(0), min_bytes=10 * SIZE, wait_ms=60_000))
    for end in range(1, 10):
        bench.request(produce())
        bench.request(fetch(end, replica=2))
    assert WAITERS == len(bench.broker.state.fetches)
    assert [] == reads
    bench.request(produce())
    woken = bench.request(fetch(10, replica=2))
    assert [list(range(10))] * WAITERS == [
        [one.base_offset for one in response.results[0].batches]
        for response in answers(woken)
        if isinstance(response, FetchResponse) and response.results[0].batches
    ]
    assert [0] == reads


def test_place_of_who_waits_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: Kafka, DelayedFetch: it waits with the position at which it begins."""
    bench = committed(leading("kip101", (0, 1), (0, 1)))
    looked: list[int] = []
    real = MemoryLog.position_of
    monkeypatch.setattr(MemoryLog, "position_of", lambda log, offset: looked.append(offset) or real(log, offset))
    bench.request(asked(at(1), min_bytes=4 * SIZE, wait_ms=60_000))
    for end in range(2, 6):
        bench.request(produce())
        bench.request(fetch(end + 1, replica=2))
    assert 1 == looked.count(1)
    assert 0 == len(bench.broker.state.fetches)


def test_no_log_is_looked_into_for_who_has_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower of thousands of partitions is at the end of most of them, in each of its fetches."""
    bench = committed(leading("kip380", (0, 1)))
    looked: list[int] = []
    real = MemoryLog.position_of
    monkeypatch.setattr(MemoryLog, "position_of", lambda log, offset: looked.append(offset) or real(log, offset))
    for who in (2, -1):
        bench.request(fetch(1, replica=who, wait_ms=60_000))
    assert 2 == len(bench.broker.state.fetches)
    assert [] == looked
    bench.request(produce())
    assert [1] == [offset for offset in looked if offset < 2]  # the follower's place; the consumer has nothing yet


def test_waiters_of_another_partition_are_not_looked_at() -> None:
    bench = leading()
    other = TopicPartition("t", 1)
    bench.command(leader=1, epoch=1, tp=other)
    for _ in range(WAITERS):
        bench.request(asked(at(0, tp=other), wait_ms=60_000))
    assert [] == bench.broker.state.fetches.on(TP)
    bench.request(produce())
    assert WAITERS == len(bench.broker.state.fetches)


def test_wait_ends_when_a_partition_gave_as_much_as_it_may() -> None:
    """Source: Kafka, DelayedFetch.tryComplete: a partition counts at most its own max_bytes."""
    bench = committed(leading("kip101", (0, 1), (0, 1), (0, 1)))
    assert [] == read(bench.request(asked(at(0, max_bytes=1), min_bytes=2, wait_ms=500)))
    assert [[0]] == offsets(bench.request(asked(at(0, max_bytes=1), min_bytes=1, wait_ms=500)))


# --- sizes ----------------------------------------------------------------------------------------------------
def test_one_batch_beyond_the_size_goes_in_an_answer_and_not_one_of_each_partition() -> None:
    """Source: Kafka, ReplicaManager.readFromLog: minOneMessage holds for the first partition with records."""
    bench = committed(leading("kip101", (0, 1), (0, 1)))
    parts = [at(0, max_bytes=1), at(0, max_bytes=1), at(1, max_bytes=1)]
    assert [[0], [], []] == offsets(bench.request(asked(*parts, max_bytes=1)))
    assert [[], [0]] == offsets(bench.request(asked(at(2), at(0, max_bytes=1), max_bytes=1)))


def test_answer_is_bounded_by_the_broker_too() -> None:
    """Source: KIP-541, fetch.max.bytes."""
    bench = leading("kip101", (0, 1), (0, 1), (0, 1), limits=Limits(answer_bytes_max=2 * SIZE))
    committed(bench)
    assert [[0, 1]] == offsets(bench.request(asked(at(0))))
    assert [[0, 1], []] == offsets(bench.request(asked(at(0), at(0))))


# --- memory ---------------------------------------------------------------------------------------------------
def step(bench: Bench, request: FetchRequest, room: int) -> list[Effect]:
    """Deliver a request on a new connection, with so much room for answers."""
    bench._callers += 1
    caller = Caller(connection=bench._callers, number=1)
    return bench.broker.step(bench.now_ns, Received(caller=caller, request=request), room)


@pytest.mark.parametrize(("room", "found"), [(0, []), (1, [0]), (2 * SIZE, [0, 1]), (-5, [])])
def test_consumers_get_as_much_as_there_is_memory_for(room: int, found: list[int]) -> None:
    bench = committed(leading("kip101", (0, 1), (0, 1), (0, 1)))
    assert [found] == offsets(step(bench, asked(at(0)), room))


def test_consumer_waits_for_memory_and_gets_nothing_when_its_wait_is_over() -> None:
    bench = committed(leading("kip101", (0, 1)))
    assert [] == read(step(bench, asked(at(0), wait_ms=500), 0))
    bench.now_ns += 500_000_000
    assert [[]] == offsets(bench.broker.step(bench.now_ns, Tick(), 0))


def test_those_who_are_woken_together_share_the_memory() -> None:
    bench = leading()
    for _ in range(3):
        bench.request(asked(at(0), wait_ms=60_000))
    bench.request(produce())
    woken = step(bench, fetch(1, replica=2), 2 * SIZE)
    assert [[0], [0], []] == offsets(woken)
    assert 1 == len(bench.broker.state.fetches)


def test_followers_get_records_without_memory() -> None:
    bench = leading("kip101", (0, 1), (0, 1))
    assert [[0, 1]] == offsets(step(bench, fetch(0, replica=2), 0))
