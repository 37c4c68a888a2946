"""
The write of the ISR is conditional and takes effect when its answer arrives (I numbers Kafka's own cases).

The leader here writes the ISR itself, conditionally, as Kafka does up to 2.6: where those tests have an AlterIsr
request and its answer, these have a write to ZooKeeper and its result. Error 95 is a refused write, a network
error a write whose answer was lost. Their maximal ISR is the replicas that count for the high watermark while
the write is under way.
"""

from __future__ import annotations

import pytest

from targets.broker.core.events import ZkSession
from targets.broker.core.messages import ErrorCode
from targets.broker.core.rules import PROTOCOLS
from tests.broker.core.asks import ISR_STATE, THREE, fetch, isr_of, lead, leader_of, produce, produced


def test_isr_write_keeps_leader_and_epoch_and_raises_the_version() -> None:
    """Source: Kafka Replication Design V3, Paths 4: "The current leader only updates the ISR part"."""
    bench = leader_of(10, isr=THREE)
    bench.pass_ms(30_001)
    state = bench.zk.state()
    assert (state.leader, state.leader_epoch, state.isr, state.controller_epoch) == (1, 5, (1,), 1)
    assert (state.zk_version, bench.replica.zk_version) == (1, 1)
    bench.request(fetch(10, replica=3))
    assert (bench.zk.state().isr, bench.replica.zk_version) == ((1, 3), 2)


@pytest.mark.parametrize("change", ["expand", "shrink"])
def test_i2_i6_refused_write_leaves_the_isr_and_is_not_tried_again(change: str) -> None:
    """
    Source:  Kafka PartitionTest, testIsrNotExpandedIfUpdateFails (I2) and testIsrNotShrunkIfUpdateFails (I6).
             Another write came first: a command is on its way, and until it arrives the leader changes nothing.
    """
    before = (1,) if change == "expand" else (1, 2)
    bench = leader_of(10, isr=before)
    bench.zk.put_state(1, 6, before)

    def ask_for_change() -> None:
        if change == "expand":
            bench.request(fetch(10, replica=2))
        else:
            bench.pass_ms(30_001)

    for _ in range(3):
        ask_for_change()
    assert (bench.replica.isr, bench.replica.isr_blocked, bench.observed("isr")) == (before, True, [])
    assert (bench.zk.state().zk_version, bench.replica.high_watermark) == (1, 10 if change == "expand" else 0)
    bench.command(leader=1, epoch=6, isr=before, replicas=THREE, zk_version=1)
    ask_for_change()
    assert isr_of(bench) == (((1, 2), (1, 2)) if change == "expand" else ((1,), (1,)))


def test_refused_write_keeps_the_old_isr_and_is_not_tried_again_until_a_command_comes() -> None:
    """
    Source:  Kafka Replication Design V3, G ("the update is conditional") and discussion 3; Kafka's "Cached
             zkVersion ... skip updating ISR". A replaced leader cannot shrink the ISR, so it cannot commit.
    """
    bench = leader_of(10, isr=(1, 2))
    bench.request(produce(acks=-1, timeout_ms=10**9))
    bench.zk.put_state(2, 6, (2,))
    effects = [effect for _ in range(5) for effect in bench.pass_ms(30_001)]
    assert bench.observed("isr", effects) == []
    assert produced(effects) == []
    assert (bench.replica.isr, bench.replica.high_watermark, bench.replica.isr_blocked) == ((1, 2), 0, True)
    assert (bench.zk.state().leader, bench.zk.state().isr, bench.zk.state().zk_version) == (2, (2,), 1)
    lead(bench, epoch=7, isr=(1, 2), replicas=THREE)
    bench.pass_ms(60_000)
    assert isr_of(bench) == ((1,), (1,))


def test_refused_write_is_tried_again_if_somebody_has_only_written_the_same_state_once_more() -> None:
    """The version alone differs, and no command is on its way: who waited for one would never shrink its ISR."""
    bench = leader_of(10, isr=(1, 2))
    bench.request(produce(acks=-1, timeout_ms=10**9))
    bench.zk.put(ISR_STATE, bench.zk.nodes[ISR_STATE].data)
    effects = [effect for _ in range(3) for effect in bench.pass_ms(30_001)]
    assert (isr_of(bench), bench.replica.zk_version) == (((1,), (1,)), 2)
    assert produced(effects) == [(ErrorCode.NONE, 10)]


@pytest.mark.parametrize("happened", [True, False])
def test_i5_shrink_whose_answer_was_lost_is_read_back(happened: bool) -> None:
    """
    Source:  Kafka PartitionTest, testRetryShrinkIsr (I5). After a lost connection it is unknown whether the write
             was applied; the node's content shows it.
    """
    bench = leader_of(10, isr=(1, 2))
    bench.request(produce(acks=-1, timeout_ms=10**9))
    bench.lose(ISR_STATE, happened=happened)
    effects = bench.pass_ms(30_001)
    if not happened:
        assert (isr_of(bench), produced(effects)) == (((1, 2), (1, 2)), [])
        effects = bench.pass_ms(15_000)
    assert (isr_of(bench), bench.replica.zk_version) == (((1,), (1,)), 1)
    assert produced(effects) == [(ErrorCode.NONE, 10)]


def test_lost_write_that_somebody_else_overtook_blocks_the_leader() -> None:
    bench = leader_of(10, isr=(1, 2))
    bench.hold(ISR_STATE)
    bench.pass_ms(30_001)
    bench.zk.put_state(2, 6, (2,))
    bench.lose(ISR_STATE, happened=False)
    bench.release()
    assert (bench.replica.isr, bench.replica.isr_blocked, bench.replica.high_watermark) == ((1, 2), True, 0)


def test_reading_back_waits_while_the_connection_stays_lost() -> None:
    bench = leader_of(10, isr=(1, 2))
    for _ in range(3):
        bench.lose(ISR_STATE, happened=True)
    bench.pass_ms(30_001)
    assert bench.replica.isr == (1, 2)
    bench.pass_ms(500)
    assert bench.replica.isr == (1, 2)
    bench.pass_ms(500)
    assert isr_of(bench) == ((1,), (1,))


def test_write_answered_in_a_session_that_ended_since_is_read_back() -> None:
    bench = leader_of(10, isr=(1, 2))
    bench.hold(ISR_STATE)
    bench.pass_ms(30_001)
    bench.zk.close_session(7)
    bench.session = 8
    bench.release()
    # The answer carries session 8, which the core does not know yet, so it is ignored.
    assert bench.replica.isr == (1, 2)
    bench.step(ZkSession(session=8))
    bench.pass_ms(500)
    assert isr_of(bench) == ((1,), (1,))


# --- replicas that count for the high watermark ------------------------------------------------------------
@pytest.mark.parametrize("lost", [False, True], ids=["under way", "answer lost"])
def test_follower_that_is_being_let_in_counts_for_the_high_watermark_already(lost: bool) -> None:
    """
    ZooKeeper may list the follower as electable before the leader knows: a record it lacks must not be committed.

    Source:  KIP-497, maximal ISR; up to 2.6 Kafka's leader waits for the write under the partition's lock.
    """
    bench = leader_of(10, isr=(1,))
    bench.hold(ISR_STATE)
    bench.request(fetch(10, replica=2))
    assert produced(bench.request(produce(acks=-1))) == []
    assert bench.replica.high_watermark == 10
    if lost:
        bench.lose(ISR_STATE, happened=True)
    bench.release()
    assert isr_of(bench) == ((1, 2), (1, 2))
    assert produced(bench.request(fetch(11, replica=2))) == [(ErrorCode.NONE, 10)]


def test_follower_that_may_have_been_let_in_before_another_write_counts_until_a_command_comes() -> None:
    """Source: KIP-497."""
    bench = leader_of(10, isr=(1,))
    bench.lose(ISR_STATE, happened=True)
    bench.lose(ISR_STATE, happened=True)  # the read-back
    bench.request(fetch(10, replica=2))
    bench.zk.put_state(2, 6, (2,))
    bench.pass_ms(500)
    assert produced(bench.request(produce(acks=-1))) == []
    assert (bench.replica.isr, bench.replica.isr_blocked, bench.replica.high_watermark) == ((1,), True, 10)


def test_expansion_that_did_not_happen_frees_the_high_watermark() -> None:
    """Source: KIP-497."""
    bench = leader_of(10, isr=(1,))
    bench.hold(ISR_STATE)
    bench.request(fetch(10, replica=2))
    bench.request(produce(acks=-1))
    bench.lose(ISR_STATE, happened=False)
    assert produced(bench.release()) == [(ErrorCode.NONE, 10)]
    assert isr_of(bench) == ((1,), (1,))


def test_only_one_change_of_the_isr_is_under_way() -> None:
    bench = leader_of(10, isr=(1,))
    bench.hold(ISR_STATE)
    bench.request(fetch(10, replica=2))
    bench.request(fetch(10, replica=3))
    assert len(bench.held) == 1
    bench.release()
    bench.request(fetch(10, replica=3))
    assert isr_of(bench) == (THREE, THREE)


def test_i9_answer_to_a_write_of_an_older_epoch_changes_nothing() -> None:
    """Source: Kafka PartitionTest, testAlterIsrLeaderAndIsrRace (I9): the next shrink does not wait for it."""
    bench = leader_of(10, isr=(1, 2))
    bench.hold(ISR_STATE)
    bench.pass_ms(30_001)
    lead(bench, epoch=6, isr=(1, 2), replicas=THREE)
    bench.release()
    assert (bench.replica.isr, bench.replica.zk_version, bench.replica.isr_blocked) == ((1, 2), 1, False)
    bench.pass_ms(60_000)
    assert isr_of(bench) == ((1,), (1,))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_i11_same_epoch_again_keeps_what_is_known_of_the_followers(protocol: str) -> None:
    """Source: Kafka PartitionTest, testDoNotResetReplicaStateIfLeaderEpochIsNotBumped (I11)."""
    bench = leader_of(10, isr=(1, 2), rules=protocol)
    bench.request(fetch(4, replica=2))
    bench.command(leader=1, epoch=5, isr=(1, 2), replicas=THREE, zk_version=9)
    assert (bench.replica.progress[2].end, bench.replica.high_watermark, bench.replica.zk_version) == (4, 4, 0)
    bench.command(leader=1, epoch=6, isr=(1, 2), replicas=THREE, zk_version=9)
    assert bench.replica.progress[2].end == -1
