"""
Event sequences that do harm when a rule of replication is missing; each returns whether the harm occurred.

Harm is what a client or an auditor would report: a member of the ISR that lacks an acknowledged record (`owing`),
two replicas that hold different records at an offset while one follows the other (`diverging`), or a partition
that stays without a leader. Brokers are numbers; each docstring says what happens in its sequence.
"""

from __future__ import annotations

from dataclasses import replace

from targets.broker.core.messages import (
    DeletePartition,
    DeleteRecordsRequest,
    FetchRequest,
    OffsetForLeaderEpochRequest,
)
from targets.broker.core.rules import Rules
from targets.broker.core.state import Role
from tests.broker.core.asks import fetch, fetch_answer, leader_of, leading, produce
from tests.broker.core.bench import TP, Bench, MemoryLog, batch, recovery
from tests.broker.core.cluster import Cluster
from tests.broker.core.stage import Stage


# --- two replicas ------------------------------------------------------------------------------------------------
def restarts_behind(rules: Rules) -> bool:
    """Scenario 1: 1 has m2 and a late high watermark; it restarts, its fetch is held, and its leader crashes."""
    stage = Stage(rules, high_watermark_checkpoint_ms=100)
    stage.elect(2)
    stage.write(2, 101, acks=-1)
    stage.pass_ms(1_000)
    stage.write(2, 102, acks=-1)
    stage.stop(1)
    stage.hold(1, 2, FetchRequest)
    stage.start(1)
    stage.crash(2)
    stage.elect(1, isr=(1,))
    assert stage.acknowledged() == [101, 102]
    return stage.owing() == [102]


def returns_to_another_history(rules: Rules) -> bool:
    """Scenario 2: both lose power and 2 loses m2; 2 leads and writes m3 at m2's offset, then 1 returns."""
    stage = Stage(rules, high_watermark_checkpoint_ms=100)
    stage.elect(1)
    for crc in (101, 102):
        stage.write(1, crc, acks=-1)
    stage.pass_ms(1_000)
    sessions = [stage.stop(1), stage.stop(2)]
    stage.lose_power(2, kept=1)
    for session in sessions:
        stage.expire(session)
    stage.start(2)
    stage.elect(2, isr=(2,))
    stage.write(2, 103, 2)
    stage.start(1)
    stage.pass_ms(2_000)
    return stage.diverging(1, 2) == [1]


def asks_for_an_epoch_that_its_leader_does_not_know(rules: Rules) -> bool:
    """KAFKA-6361, n = 20: 2 wrote 11 to 20 in epoch 2; 1, which leads epoch 3 from 21, does not know epoch 2."""
    stage = Stage(rules)
    stage.elect(1, epoch=1)
    stage.write(1, 1, 11, acks=-1)
    stage.pass_ms(1_000)
    stage.deafen(2, 1)
    stage.write(1, 2, 10)
    stage.mute(1, 2)
    stage.mute(2, 1)
    stage.elect(2)
    stage.write(2, 3, 10)
    stage.elect(1)
    stage.write(1, 4, 10)
    stage.release()
    return stage.diverging(1, 2) == list(range(11, 21))


def falls_back_though_the_leader_could_have_said(rules: Rules) -> bool:
    """The same with a late high watermark: told "undefined", 2 truncates committed records and is then elected."""
    stage = Stage(rules)
    stage.elect(1, epoch=1)
    stage.write(1, 1, 11, acks=-1)
    stage.mute(1, 2)
    stage.mute(2, 1)
    stage.elect(2)
    stage.write(2, 3, 5)
    stage.elect(1)
    stage.write(1, 4, 5)
    stage.release(2, OffsetForLeaderEpochRequest)
    stage.crash(1)
    stage.elect(2)
    assert 1 in stage.acknowledged()
    return 1 in stage.owing()


def asks_without_an_epoch(rules: Rules) -> bool:
    """KAFKA-6857: no batch carries an epoch; past its high watermark, at 1, 2's record is not its leader's."""
    stage = Stage(
        rules,
        logs={1: [(-1, 1, 101), (-1, 1, 103)], 2: [(-1, 1, 101), (-1, 1, 102)]},
        high_watermarks={1: 1, 2: 1},
        message_format=1,
    )
    stage.elect(1)
    return stage.diverging(1, 2) == [1]


def asks_for_an_epoch_before_its_leaders_first(rules: Rules) -> bool:
    """KAFKA-7415, second half: 1 and 2 both act as leader and write a first record each; then 2 follows 1."""
    stage = Stage(rules)
    stage.mute(1, 2)
    stage.mute(2, 1)
    stage.elect(1, tell=[1])
    stage.elect(2, tell=[2])
    stage.write(1, 100)
    again = stage.elect(1, tell=[1])
    stage.write(2, 101)
    stage.write(1, 102)
    stage.tell(2, again)
    stage.release()
    return stage.diverging(1, 2) == [0]


def asks_a_leader_that_has_written_nothing(rules: Rules) -> bool:
    """
    KAFKA-7415, first half: 1 wrote in epoch 1; 2 leads epoch 2 without a record; 1 truncates, then is elected.
    """
    stage = Stage(rules)
    stage.elect(2)
    stage.write(2, 100, acks=-1)
    stage.mute(2, 1)
    stage.mute(1, 2)
    stage.elect(1)
    stage.write(1, 101)
    stage.elect(2)
    stage.release(1, OffsetForLeaderEpochRequest)
    stage.crash(2)
    stage.elect(1)
    assert stage.acknowledged() == [100]
    return 100 in stage.owing()


def returns_to_lead_what_it_has_half_lost(rules: Rules) -> bool:
    """Scenario 3: both lose power and 1 loses m2; it returns first and finds that it leads; 2 returns later."""
    stage = Stage(rules, high_watermark_checkpoint_ms=100)
    stage.elect(1)
    for crc in (101, 102):
        stage.write(1, crc, acks=-1)
    stage.pass_ms(1_000)
    sessions = [stage.stop(1), stage.stop(2)]
    stage.lose_power(1, kept=1)
    for session in sessions:
        stage.expire(session)
    stage.start(1)
    stage.write(1, 103)
    stage.elect(1)
    stage.write(1, 104)
    stage.start(2)
    stage.pass_ms(2_000)
    return stage.diverging(1, 2) == [1]


def walks_past_an_epoch_that_it_does_not_forget(rules: Rules) -> bool:
    """KIP-101's appendix: each wrote alone; an epoch that survives its truncation would be asked for again."""
    stage = Stage(
        rules,
        logs={1: [(1, 1, 103), (3, 1, 104)], 2: [(0, 1, 101), (2, 1, 102)]},
        high_watermarks={1: 2, 2: 2},
    )
    stage.elect(1, epoch=3)
    return stage.diverging(1, 2) == [0]


def asks_about_what_its_leader_has_half_deleted(rules: Rules) -> bool:
    """KIP-101, deleted segments: 1 wrote alone in epoch 1; of what took the place in 2's log, half is deleted."""
    stage = Stage(
        rules,
        logs={1: [(0, 3, 7), *[(1, 1, 101)] * 4], 2: [(0, 3, 7), *[(2, 1, 102)] * 8]},
        high_watermarks={1: 3, 2: 11},
    )
    stage.elect(2, epoch=2, isr=(2,), tell=[2])
    parts = (DeletePartition(tp=TP, offset=5),)
    stage.ask(2, DeleteRecordsRequest(partitions=parts, timeout_ms=1_000))
    assert stage.replica(2).log.start_offset == 5
    stage.elect(2, epoch=3)
    return stage.diverging(1, 2) == [5, 6]


def bounces_unseen(rules: Rules) -> bool:
    """KAFKA-1120: a leader bounces between two reads by the controller, and waits for a new epoch."""
    cluster = Cluster(rules, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    old = cluster.stop(1)
    cluster.start(1)
    cluster.expire(old)
    cluster.pass_ms(10_000)
    return Role.LEADER not in [role for role, _ in cluster.roles().values()]


def keeps_a_deleted_topics_records(rules: Rules) -> bool:
    """V3, discussion 5: a topic is deleted and created again while no controller is in office."""
    cluster = Cluster(rules, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, crc=666)
    old = cluster.stop(3)
    cluster.delete("t", via=1)
    cluster.create(replicas=(2, 1), via=1)
    cluster.expire(old)
    cluster.pass_ms(10_000)
    logs = [cluster.replica(broker).log for broker in (1, 2)]
    return 666 in [item.crc for log in logs if isinstance(log, MemoryLog) for item in log.batches]


def appends_what_is_sent_again(rules: Rules) -> bool:
    """KIP-98: the answer to an idempotent producer is lost, and it sends its batch again."""
    bench = leading(rules)
    for _ in range(2):
        sent = replace(batch(), producer_id=7, producer_epoch=0, base_sequence=0)
        bench.request(produce(sent))
    return bench.replica.log.end_offset > 1


# --- three replicas ----------------------------------------------------------------------------------------------
def copied_by_3(rules: Rules) -> Stage:
    """
    Return a stage where 1 leads epoch 0 and wrote a record at 0 that 3 copied and 2 did not.

    3's next fetch, at 1 in epoch 0, is held.
    """
    stage = Stage(rules, (1, 2, 3))
    stage.mute(2, 1)
    stage.elect(1)
    stage.hold(3, 1, FetchRequest)
    stage.write(1, 100)
    assert stage.ends(1, 2, 3) == [1, 0, 1]
    return stage


def hears_nothing_of_another_leader(rules: Rules) -> bool:
    """KAFKA-7164: 2 led meanwhile and 1 truncated; 3 learns only that 1 leads, as before."""
    stage = copied_by_3(rules)
    stage.elect(2, tell=[2, 1])
    stage.elect(1)
    stage.write(1, 101)
    stage.release(3)
    return stage.diverging(1, 3) == [0]


def is_let_in_before_the_epochs_start(rules: Rules) -> bool:
    """KAFKA-7128: 1 and 2 acknowledged 10 to 14; 2 leads with a late high watermark, and 3 fetches at 10."""
    ten = [(0, 10, 1)]
    stage = Stage(rules, (1, 2, 3), logs={1: ten, 2: ten, 3: ten}, high_watermarks={1: 10, 2: 10, 3: 10})
    stage.mute(3, 1)
    stage.elect(1, isr=(1, 2))
    stage.write(1, 2, 5, acks=-1)
    assert (stage.acknowledged(), stage.replica(2).high_watermark) == ([2], 10)
    stage.mute(1, 2)
    stage.deafen(3, 2)
    stage.elect(2)
    assert stage.replica(2).epoch_start == 15
    return stage.owing() == [2]


def believes_an_answer_of_an_older_epoch(rules: Rules) -> bool:
    """KAFKA-7786: 1 answers 3 in epoch 1; before the answer arrives, 1 truncates under 2 and writes in epoch 3."""
    stage = copied_by_3(rules)
    stage.hold(3, 1, OffsetForLeaderEpochRequest, answers=True)
    stage.elect(1, tell=[1, 3])
    stage.elect(2, tell=[2, 1])
    stage.elect(1)
    stage.write(1, 101)
    stage.release(3)
    return stage.diverging(1, 3) == [0]


def asks_a_leader_that_is_cut_afterwards(rules: Rules) -> bool:
    """3 learns of epoch 2 before 1 learns of epoch 1: 1 still leads epoch 0 when 3 asks, and truncates later."""
    stage = copied_by_3(rules)
    one = stage.elect(2, tell=[2])
    two = stage.elect(1, tell=[3])
    stage.tell(1, one)
    assert stage.ends(1) == [0]
    stage.tell(1, two)
    stage.write(1, 101)
    stage.release(3)
    stage.pass_ms(2_000)
    return stage.diverging(1, 3) == [0]


def fetches_in_an_epoch_that_is_over(rules: Rules) -> bool:
    """KAFKA-6880: 3 fetches at 1 in epoch 0 from 1, which truncated and leads epoch 2; then 3 learns of it."""
    stage = copied_by_3(rules)
    stage.elect(2, tell=[2, 1])
    stage.elect(1, tell=[1, 2])
    stage.write(1, 101)
    stage.write(1, 102)
    stage.release(3)
    stage.elect(1)
    return stage.diverging(1, 3) == [0]


def acknowledges_what_it_does_not_hold(rules: Rules) -> bool:
    """3's refused fetch at 1, in epoch 0, acknowledges the record that 1 wrote at 0 in epoch 2."""
    stage = copied_by_3(rules)
    stage.elect(2, tell=[2, 1])
    stage.crash(2)
    stage.elect(1, isr=(1, 3), tell=[1])
    stage.write(1, 101, acks=-1)
    stage.release(3)
    return stage.owing() == [101]


def joins_by_a_fetch_that_is_refused(rules: Rules) -> bool:
    """1 alone acknowledged its record at 0 in epoch 2; 3's refused fetch at 1, in epoch 0, adds 3 to the ISR."""
    stage = copied_by_3(rules)
    stage.elect(2, tell=[2, 1])
    stage.crash(2)
    stage.elect(1, isr=(1,), tell=[1])
    stage.write(1, 101, acks=-1)
    stage.release(3)
    return stage.owing() == [101]


def is_believed_to_hold_what_it_held(rules: Rules) -> bool:
    """3 had reached 1 when 1 led epoch 0; 1 has truncated and leads epoch 2, and 3 has not fetched since."""
    stage = copied_by_3(rules)
    stage.release(3)
    stage.hold(3, 1, FetchRequest)
    stage.elect(2, tell=[2, 1])
    stage.crash(2)
    stage.elect(1, isr=(1, 3), tell=[1])
    stage.write(1, 101, acks=-1)
    return stage.owing() == [101]


# --- what is deleted on purpose ------------------------------------------------------------------------------
def deletes_what_no_follower_has(rules: Rules) -> bool:
    """Retention of a leader deletes a file that is not committed (KAFKA-5634)."""
    bench = leader_of(0, isr=(1, 2), rules=rules, retention_bytes=1, retention_check_ms=1)
    for _ in range(3):
        bench.request(produce())
    bench.request(fetch(1, replica=2))
    bench.pass_ms(1)
    return bench.replica.log.start_offset > bench.replica.high_watermark


def compacts_what_no_follower_has(rules: Rules) -> bool:
    """A leader's log is compacted past what is committed (KAFKA-13194)."""
    bench = leader_of(0, isr=(1, 2), rules=rules, compact=True, compaction_check_ms=1)
    bench.request(produce())
    bench.request(fetch(0, replica=2))
    bench.pass_ms(1)
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    return log.cleans[-1][0] > bench.replica.high_watermark


def forgets_a_tombstone_that_was_just_cleaned(rules: Rules) -> bool:
    """What a reader saw just before the first cleaning is deleted without a trace by the second (KAFKA-4545)."""
    bench = leader_of(0, isr=(1,), rules=rules, compact=True, compaction_check_ms=1, delete_retention_ms=1_000)
    bench.request(produce())
    bench.pass_ms(1)
    log = bench.replica.log
    assert isinstance(log, MemoryLog)
    return log.delays[-1].is_over(None, in_old_file=True)


def cannot_begin_where_its_leaders_log_does(rules: Rules) -> bool:
    """A follower's fetcher ends, because its leader's log starts inside a batch (KAFKA-6975)."""
    bench = Bench(rules)
    log = MemoryLog(TP, start_offset=4, end_offset=4)
    bench.start((log, recovery(log, high_watermark=4)))
    bench.command(leader=2, epoch=1)
    bench.answer(fetch_answer(batch(count=4, base=2, epoch=1), high_watermark=6))
    return bool(bench.observed("stuck"))
