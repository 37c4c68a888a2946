"""
ISR membership, against Kafka's own numbers (I numbers the cases of its PartitionTest and IsrExpirationTest).

test_isr_write.py covers the write of a change to ZooKeeper.
"""

from __future__ import annotations

import pytest

from targets.broker.core.rules import PROTOCOLS
from tests.broker.core.asks import (
    ISR_STATE,
    LAG_MS,
    THREE,
    ends_at,
    fetch,
    fetch_answer,
    isr_of,
    lead,
    leader_of,
    produce,
    registered,
)
from tests.broker.core.bench import Bench, batch


def caught_up_ms(bench: Bench, follower: int) -> int:
    return bench.replica.progress[follower].caught_up_ns // 1_000_000 - 10_000


# --- Kafka's own numbers -----------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_i1_follower_joins_the_isr_when_it_reaches_the_high_watermark(protocol: str) -> None:
    """
    Source:  Kafka Replication Design V3, maybe_change_ISR;
             Kafka PartitionTest, testIsrExpansion (I1), for a leader that writes the ISR itself.
    """
    bench = leader_of(10, isr=(1,), rules=protocol)
    assert bench.replica.high_watermark == 10
    bench.request(fetch(3, replica=2))
    assert isr_of(bench) == ((1,), (1,))
    assert (bench.replica.progress[2].end, bench.replica.progress[2].caught_up_ns) == (3, 0)
    effects = bench.request(fetch(10, replica=2))
    assert isr_of(bench) == ((1, 2), (1, 2))
    assert [(seen["version"], seen["isr"]) for seen in bench.observed("isr", effects)] == [(1, [1, 2])]
    assert bench.zk.state().leader_epoch == 5


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_i3_follower_joins_the_isr_past_the_epochs_start_by_rule(protocol: str) -> None:
    """
    Source:  Kafka PartitionTest, testFollowerDoesNotJoinISRUntilCaughtUpToOffsetWithinCurrentLeaderEpoch (I3),
             since KAFKA-7128. Epoch 8: 2 and 3 records, the ISR is {1, 2}; 2 fetches 0, 1: HW 1. Epoch 10 begins
             at 5.
    """
    bench = registered(protocol, replicas=THREE)
    lead(bench, epoch=8, isr=(1, 2), replicas=THREE)
    bench.request(produce(batch(), batch()))
    bench.request(produce(batch(), batch(), batch()))
    for offset in (0, 1):
        bench.request(fetch(offset, replica=2))
    bench.command(leader=2, epoch=9, isr=(1, 2), replicas=THREE)
    if PROTOCOLS[protocol].epochs:
        bench.answer(ends_at(5, epoch=8))
    else:  # it truncated to its high watermark without asking, and copies 1 to 4 again
        bench.answer(fetch_answer(*[batch(base=base) for base in range(1, 5)], high_watermark=1))
    lead(bench, epoch=10, isr=(1, 2), replicas=THREE)
    bench.request(produce(batch(), batch()))
    assert (bench.replica.high_watermark, bench.replica.epoch_start) == (1, 5)
    joined = []
    for offset in (0, 1, 5):
        bench.request(fetch(offset, replica=3))
        joined += [offset] if 3 in bench.zk.state().isr else []
    assert joined[0] == (5 if PROTOCOLS[protocol].join_isr_past_epoch_start else 1)


def test_i4_isr_shrinks_when_a_follower_was_not_caught_up_for_too_long() -> None:
    """
    Source:  Kafka Replication Design V3, maybe_change_ISR;
             Kafka PartitionTest, testMaybeShrinkIsr (I4): HW 0 until the write succeeds, then 10.
    """
    bench = leader_of(10, isr=THREE)
    bench.request(fetch(10, replica=2))
    bench.pass_ms(15_000)
    assert (isr_of(bench), bench.replica.high_watermark) == ((THREE, THREE), 0)
    bench.hold(ISR_STATE)
    bench.pass_ms(15_001)
    assert (bench.replica.isr, bench.replica.high_watermark) == (THREE, 0)
    bench.release()
    assert (isr_of(bench), bench.replica.high_watermark) == (((1, 2), (1, 2)), 10)


def test_i7_follower_stays_when_each_fetch_reaches_what_was_the_end_at_the_one_before() -> None:
    """Source: Kafka PartitionTest, testShouldNotShrinkIsrIfPreviousFetchIsCaughtUp (I7)."""
    bench = leader_of(10, isr=(1, 2), lag_ms=LAG_MS)
    bench.pass_ms(5_000)
    bench.request(fetch(5, replica=2))
    assert bench.replica.high_watermark == 5
    bench.pass_ms(5_001)
    bench.request(produce(*[batch()] * 5))
    bench.request(fetch(10, replica=2))
    assert (caught_up_ms(bench, 2), bench.replica.high_watermark) == (5_000, 10)
    bench.pass_ms(24_998)
    assert isr_of(bench) == ((1, 2), (1, 2))
    bench.pass_ms(15_000)
    assert isr_of(bench) == ((1,), (1,))


@pytest.mark.parametrize("records", [0, 10], ids=["KAFKA-7152, an empty log", "I8, I16"])
def test_i8_i16_idle_follower_at_the_log_end_stays_in_the_isr(records: int) -> None:
    """Source: Kafka PartitionTest, testShouldNotShrinkIsrIfFollowerCaughtUpToLogEnd (I8); KAFKA-7152 (I16)."""
    bench = leader_of(records, isr=(1, 2))
    bench.request(fetch(records, replica=2))
    for _ in range(10):
        bench.pass_ms(30_001)
    assert isr_of(bench) == ((1, 2), (1, 2))


def test_i10_follower_is_caught_up_only_when_it_fetches_at_the_end() -> None:
    """Source: Kafka PartitionTest, testUpdateFollowerFetchState (I10)."""
    bench = leader_of(6, isr=(1, 2))
    bench.pass_ms(500)
    bench.request(fetch(3, replica=2))
    assert (bench.replica.progress[2].end, caught_up_ms(bench, 2)) == (3, 0)
    bench.pass_ms(500)
    bench.request(fetch(6, replica=2))
    assert (bench.replica.progress[2].end, caught_up_ms(bench, 2)) == (6, 1_000)


@pytest.mark.parametrize("behind", [1, None], ids=["I13 stuck", "I14 no fetch at all"])
def test_i13_i14_follower_that_stands_still_leaves_the_isr(behind: int | None) -> None:
    """
    Source:  Kafka Replication Design V3, maybe_change_ISR;
             Kafka IsrExpirationTest (I13, I14): lag limit 100 ms, 150 ms pass.
    """
    bench = leader_of(10, isr=(1, 2), lag_ms=100)
    if behind is not None:
        bench.request(fetch(10 - behind, replica=2))
    bench.pass_ms(150)
    assert isr_of(bench) == ((1,), (1,))


def test_i15_slow_follower_leaves_and_comes_back_at_the_end() -> None:
    """Source: Kafka IsrExpirationTest (I15): two behind; +75 ms one behind: in; +75 ms: out; at the end: in."""
    bench = leader_of(10, isr=(1, 2), lag_ms=100)
    bench.request(fetch(8, replica=2))
    bench.pass_ms(75)
    bench.request(fetch(9, replica=2))
    assert isr_of(bench) == ((1, 2), (1, 2))
    bench.pass_ms(75)
    assert isr_of(bench) == ((1,), (1,))
    bench.request(fetch(10, replica=2))
    assert isr_of(bench) == ((1, 2), (1, 2))
