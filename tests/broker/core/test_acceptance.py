"""
A cluster under writes and bounces: Kafka's acceptance tests of the leader epoch (X numbers them), by protocol.

Broker 3 is controller and holds no replica; 1 and 2 hold the partition. A bounce kills the broker, and its
session ends at once.
"""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core.epochs import EpochEntry
from targets.broker.core.events import WriteHighWatermarks
from targets.broker.core.messages import ErrorCode, OffsetForLeaderEpochResponse, ProduceRequest, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Phase
from tests.broker.core.asks import epoch_ends, epoch_question, produce
from tests.broker.core.bench import TP, batch
from tests.broker.core.cluster import Cluster

WITH_EPOCHS = tuple(name for name, rules in PROTOCOLS.items() if rules.epochs)
ON_LEAD = tuple(name for name in WITH_EPOCHS if PROTOCOLS[name].epoch_assigned_on_lead)
ONE_ANSWER = ("kip101", "kip101-text")


def cluster_of(protocol: str, replicas: tuple[int, ...] = (1, 2), **settings: Any) -> Cluster:
    """Return a cluster of three brokers, where the first of these replicas leads."""
    cluster = Cluster(protocol, brokers=(3, 1, 2), high_watermark_checkpoint_ms=100, **settings)
    cluster.create(replicas=replicas)
    return cluster


def bounce(cluster: Cluster, broker: int) -> None:
    """Kill a broker, end its session, start it, and wait until it is in sync again."""
    cluster.crash(broker)
    cluster.start(broker)
    cluster.pass_ms(2_000)
    assert sorted(cluster.state().isr) == [1, 2]


def contents(cluster: Cluster, *brokers: int) -> list[list[tuple[int, int, int]]]:
    """Return base offset, end and CRC of every batch of each broker's log."""
    logs = [cluster.replica(broker).log for broker in brokers]
    return [[(item.base_offset, item.next_offset, item.crc) for item in log.read(0, 10**9, 10**9)] for log in logs]


def ends(cluster: Cluster, *brokers: int) -> list[int]:
    return [cluster.replica(broker).log.end_offset for broker in brokers]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_x1_epochs_follow_the_bounces_of_follower_and_leader(protocol: str) -> None:
    """
    Source:  Kafka EpochDrivenReplicationProtocolAcceptanceTest, shouldFollowLeaderEpochBasicWorkflow (X1). As
             shipped up to 2.0.0 neither side has a new epoch until a record is written; then the leader has it.
    """
    at_once = protocol in ON_LEAD
    cluster = cluster_of(protocol)

    def caches(*brokers: int) -> list[list[EpochEntry]]:
        return [list(cluster.replica(broker).epochs.entries) for broker in brokers]

    cluster.produce(1)
    assert caches(1, 2) == [[(0, 0)], [(0, 0)]]
    cluster.crash(2)
    cluster.start(2)
    assert caches(1, 2) == [[(0, 0), (1, 1)] if at_once else [(0, 0)], [(0, 0)]]
    cluster.produce(1)
    assert caches(1, 2) == [[(0, 0), (1, 1)]] * 2
    cluster.crash(1)
    cluster.start(1)
    assert caches(2, 1) == [[(0, 0), (1, 1), (2, 2)] if at_once else [(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    cluster.produce(2)
    assert caches(2, 1) == [[(0, 0), (1, 1), (2, 2)]] * 2
    logs = [cluster.replica(broker).log for broker in (1, 2)]
    assert [[item.leader_epoch for item in log.read(0, 9, 999)] for log in logs] == [[0, 1, 2]] * 2


def both_lose(cluster: Cluster, *, first: int, kept: int) -> None:
    """Crash 2, then 1; restart `first`, which keeps only so many records and leads, and leave the other down."""
    cluster.pass_ms(1_000)
    cluster.crash(2)
    cluster.crash(1)
    cluster.lose_power(first, kept=kept)
    cluster.start(first)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_x2_logs_do_not_diverge_when_the_leader_lost_half_of_its_log(protocol: str) -> None:
    """
    Source:  Kafka EpochDrivenReplicationProtocolAcceptanceTest, shouldNotAllowDivergentLogs (X2): 10 batches, 5 of
             them lost, 9 more, then the other returns. Under `hw` its high watermark hides the difference.
    """
    cluster = cluster_of(protocol)
    for crc in range(10):
        cluster.produce(1, crc=crc)
    both_lose(cluster, first=1, kept=5)
    for crc in range(100, 109):
        cluster.produce(1, acks=1, crc=crc)
    cluster.start(2)
    cluster.pass_ms(2_000)
    mine, other = contents(cluster, 1, 2)
    assert ends(cluster, 1, 2) == [14, 14]
    assert ([5, 6, 7, 8, 9] if protocol == "hw" else []) == [
        a[0] for a, b in zip(mine, other, strict=True) if a != b
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_x3_offsets_do_not_go_backwards_when_big_batches_follow_a_loss(protocol: str) -> None:
    """
    Source:  Kafka EpochDrivenReplicationProtocolAcceptanceTest, offsetsShouldNotGoBackwards (X3): 100 records,
             half of them lost, two batches of 77, one of which spans the other's log end.
             "Fails before KIP-101": there the follower is stuck.
    """
    cluster = cluster_of(protocol)
    for crc in range(100):
        cluster.produce(1, crc=crc)
    both_lose(cluster, first=1, kept=50)
    for crc in (200, 201):
        cluster.produce(1, 77, acks=1, crc=crc)
    cluster.start(2)
    cluster.pass_ms(2_000)
    stuck = cluster.replica(2).phase is Phase.FAILED
    assert (protocol == "hw", [204, 100 if protocol == "hw" else 204]) == (stuck, ends(cluster, 1, 2))
    mine, other = contents(cluster, 1, 2)
    assert (mine == other) == (protocol != "hw")
    bases = [base for base, _, _ in other]
    assert sorted(set(bases)) == bases


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_x4_nothing_is_lost_over_fast_changes_of_the_leader(protocol: str) -> None:
    """
    Nothing is lost under any protocol; Kafka's own test says that it never caught the old bug.

    Source: Kafka EpochDrivenReplicationProtocolAcceptanceTest, shouldSurviveFastLeaderChange (X4).
    """
    cluster = cluster_of(protocol)
    cluster.produce(1, crc=50)
    for turn in range(5):
        cluster.produce(cluster.state().leader, crc=turn)
        leader = cluster.state().leader
        bounce(cluster, 3 - leader)
        bounce(cluster, leader)
        assert ends(cluster, 1, 2) == [turn + 2, turn + 2]
    mine, other = contents(cluster, 1, 2)
    assert [crc for _, _, crc in mine] == [50, 0, 1, 2, 3, 4]
    assert mine == other


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_x5_logs_do_not_diverge_on_unclean_elections_once_the_follower_walks(protocol: str) -> None:
    """
    Source:  Kafka EpochDrivenReplicationProtocolAcceptanceTest,
             logsShouldNotDivergeOnUncleanLeaderElections (X5): the case of KIP-101's appendix,
             fixed by KIP-279. Each led alone, twice, in turns: 1 holds epochs 0, 3, 7, and 2 epochs 0, 1, 5.

    The one answer for epoch 5 is where 7 begins, past the end of 2's log, so nothing is truncated.
    """
    cluster = cluster_of(protocol, unclean_election=True)
    cluster.produce(1, crc=10)
    cluster.crash(1)
    cluster.produce(2, acks=1, crc=20)
    for gone, comes, records in ((2, 1, 3), (1, 2, 1), (2, 1, 2)):
        cluster.crash(gone)
        cluster.start(comes)
        for crc in range(records):
            cluster.produce(comes, acks=1, crc=30 + 10 * crc + comes)
        cluster.pass_ms(200)  # its high watermark, as the only member of the ISR, is checkpointed
    epochs = [entry.epoch for entry in cluster.replica(1).epochs.entries]
    assert ([] if protocol == "hw" else [0, 3, 7]) == epochs
    cluster.start(2)
    cluster.pass_ms(2_000)
    mine, other = contents(cluster, 1, 2)
    diverging = [a[0] for a, b in zip(mine, other, strict=True) if a != b]
    assert ([1, 2] if protocol in ("hw", *ONE_ANSWER) else []) == diverging


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_x6_batches_carry_the_epoch_of_the_leader_that_took_them(protocol: str) -> None:
    """
    Source: Kafka EpochDrivenReplicationProtocolAcceptanceTest,
            shouldAddCurrentLeaderEpochToMessagesAsTheyAreWrittenToLeader (X6).
    """
    cluster = cluster_of(protocol)
    for _ in range(4):
        cluster.produce(1)
    cluster.crash(1)
    for _ in range(4):
        cluster.produce(2)
    log = cluster.replica(2).log
    assert [item.leader_epoch for item in log.read(0, 9, 10**9)] == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_x7_epochs_are_answered_for_what_a_broker_leads_and_no_other(protocol: str) -> None:
    """
    Source:  Kafka LeaderEpochIntegrationTest, shouldSendLeaderEpochRequestAndGetAResponse (X7). For a partition
             that a broker does not hold Kafka returns error 3 up to 2.0.0, and 6 since (KAFKA-7347) if it knows
             the topic; this broker keeps no metadata of partitions that it does not hold, and returns 3.
    """
    cluster = cluster_of(protocol, replicas=(1,))
    for topic, broker in (("u", 2), ("v", 1)):
        cluster.create(topic, replicas=(broker,))
    tps = [TopicPartition(topic, 0) for topic in ("t", "u", "v")]
    for tp, broker, count in zip(tps, (1, 2, 1), (10, 20, 30), strict=True):
        request: ProduceRequest = produce(batch(count), acks=-1, tp=tp)
        cluster.ask(broker, request)

    def answers(broker: int) -> list[tuple[ErrorCode, int]]:
        found = [answer for tp in tps for answer in cluster.ask(broker, epoch_question(0, tp))]
        return [
            (item.error, item.end_offset)
            for response in found
            if isinstance(response, OffsetForLeaderEpochResponse)
            for item in response.answers
        ]

    none, unknown = ErrorCode.NONE, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert answers(1) == [(none, 10), unknown, (none, 30)]
    assert answers(2) == [unknown, (none, 20), unknown]


@pytest.mark.parametrize("protocol", WITH_EPOCHS)
def test_x8_x9_epoch_rises_by_two_over_each_restart_of_a_sole_replica(protocol: str) -> None:
    """
    Source:  Kafka LeaderEpochIntegrationTest, shouldIncreaseLeaderEpochBetweenLeaderRestarts (X8) and
             shouldSupportRequestsForEpochsNotOnTheLeader (X9). One epoch for "no leader", one for the leader.
    """
    cluster = cluster_of(protocol, replicas=(1,))

    def answered(*queries: int) -> list[tuple[int, int]]:
        found = [epoch_ends(cluster.benches[1].request(epoch_question(query))) for query in queries]
        return [(epoch, end) for ((_, epoch, end),) in found]

    cluster.produce(1)
    assert answered(0) == [(0, 1)]
    cluster.crash(1)
    cluster.start(1)
    # Before a record is written in epoch 2, only a leader that assigns on lead knows it.
    assert [(0, 1), (2, 1) if protocol in ON_LEAD else (-1, -1)] == answered(0, 2)
    cluster.produce(1)
    assert answered(0, 1, 2) == [(0, 1), (0, 1), (2, 2)]
    cluster.crash(1)
    cluster.start(1)
    cluster.produce(1)
    assert (cluster.state().leader_epoch, answered(0, 2, 4)) == (4, [(0, 1), (2, 2), (4, 3)])
    assert answered(1, 3, 5) == [(0, 1), (2, 2), (-1, -1)]


@pytest.mark.parametrize(
    ("before", "after"), [((1, 1), ()), ((1,), (1,)), ((1,) * 20, ()), ((2,), (2,))], ids=["2", "1+1", "20", "2+2"]
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_l17_high_watermark_reaches_the_checkpoint_of_both_over_bounces(
    protocol: str, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    """Source: Kafka LogRecoveryTest, testHWCheckpoint... (L17): 2; 1, then 2; 20; 2, then 4."""
    cluster = cluster_of(protocol)
    total = 0
    for records in (before, after):
        for count in records:
            cluster.produce(cluster.state().leader, count)
            total += count
        cluster.pass_ms(1_500)
        assert [checkpointed(cluster, broker) for broker in (1, 2)] == [total, total]
        if after:
            bounce(cluster, cluster.state().leader)


def checkpointed(cluster: Cluster, broker: int) -> int:
    """Return the partition's high watermark as a broker last wrote it to its checkpoint."""
    written = [e.high_watermarks for e in cluster.benches[broker].effects if isinstance(e, WriteHighWatermarks)]
    return dict(written[-1])[TP]
