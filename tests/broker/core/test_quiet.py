"""
Quiet partitions of a session: what a fetch that does not name them counts for, and what is told once they change.

Source:  KIP-227; Kafka's FetchSessionTest, Replica.updateFetchState.
"""

from __future__ import annotations

from dataclasses import replace

from targets.broker.core import quiet
from targets.broker.core.messages import ErrorCode, ProduceRequest, TopicPartition
from targets.broker.core.state import Core
from tests.broker.core.asks import produce
from tests.broker.core.bench import Bench, batch
from tests.broker.core.test_fetch_sessions import A, B, C, answer, begun, leader, then, told


def looked_at(bench: Bench, number: int) -> list[TopicPartition]:
    """Return the partitions of a follower's session that are not quiet."""
    core = Core(state=bench.broker.state, disk=bench, now_ns=bench.now_ns)
    return [part.tp for part in quiet.count_quiet(core, core.state.sessions.by_id[number], 2)]


def in_step(bench: Bench) -> int:
    """Return the number of a session whose follower has been told that all it has is committed."""
    number = begun(bench)
    bench.request(then(number, 1))
    return number


def produce_to(*tps: TopicPartition) -> ProduceRequest:
    """Return one request with a batch for each of these."""
    return replace(produce(), partitions=tuple(produce(batch(1), tp=tp).partitions[0] for tp in tps))


def test_partitions_without_news_are_passed_over() -> None:
    bench = leader()
    number = in_step(bench)
    assert [] == looked_at(bench, number)
    bench.request(produce_to(B))
    assert [B] == looked_at(bench, number)


def test_what_is_told_anew_or_refused_is_looked_at() -> None:
    bench = leader()
    number = in_step(bench)
    bench.broker.state.replicas[A].log.advance_start(1)
    bench.command(leader=1, epoch=6, tp=B)
    bench.command(leader=1, epoch=6, tp=C, isr=(1,))
    assert [A, B, C] == looked_at(bench, number)


def test_a_fetch_that_does_not_name_a_partition_says_that_its_follower_has_caught_up() -> None:
    """Source: Replica.updateFetchState is called for each partition of a session, named or not."""
    bench = leader(replica_lag_ms_max=1_000)
    number = in_step(bench)
    bench.pass_ms(900)
    bench.request(then(number, 2))
    bench.request(produce_to(A))  # from here on the follower lags
    bench.pass_ms(1_000)
    assert bench.broker.state.replicas[A].isr_asked is None
    bench.pass_ms(500)
    assert (1,) == bench.broker.state.replicas[A].isr_asked
    assert bench.broker.state.replicas[B].isr_asked is None


def test_a_fetch_that_one_partition_wakes_has_the_news_of_all() -> None:
    """One produce brings records to two partitions, and wakes who waits at the first of them."""
    bench = leader()
    number = in_step(bench)
    bench.request(then(number, 2, wait_ms=500))
    assert [A, C] == told(bench.request(produce_to(A, C)))


def test_an_epoch_that_rises_while_a_fetch_waits_is_heeded_when_it_is_answered() -> None:
    """Source: KIP-320: a fetch in an older epoch is fenced."""
    bench = leader()
    number = in_step(bench)
    bench.request(then(number, 2, wait_ms=500))
    bench.command(leader=1, epoch=6, tp=C)
    found = answer(bench.request(produce_to(A))).results
    assert [(A, ErrorCode.NONE), (C, ErrorCode.FENCED_LEADER_EPOCH)] == [(each.tp, each.error) for each in found]


def test_a_fetch_is_answered_in_full_once_its_session_is_over() -> None:
    """Source: KIP-227: whoever has no session is told everything."""
    bench = leader()
    number = in_step(bench)
    bench.request(then(number, 2, wait_ms=500))
    bench.broker.state.sessions.by_id.clear()
    assert [A, B, C] == told(bench.request(produce_to(B)))
