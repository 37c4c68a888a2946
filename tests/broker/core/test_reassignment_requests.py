"""
Moves that are cancelled, changed or refused, or wait for others.

Source:  KIP-455; Kafka Replication Design V3, F.
"""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import Assignment, decode_topic, encode_assignment
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    ErrorCode,
    FetchRequest,
    MorePartitions,
    TopicErrors,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.zookeeper import topic_path
from tests.broker.core.bench import TP
from tests.broker.core.moving import CHECK_MS, OK, RECORDS, alter, cluster_of, holders, is_moved, listed, node


@pytest.mark.parametrize("dies", [None, 2])
def test_cancelled_move_gives_up_what_it_has_added(dies: int | None) -> None:
    """KIP-455: "null to cancel a pending reassignment"; no replica of before need be alive but one in sync."""
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    assert 3 in cluster.state().isr and 3 in holders(cluster)
    if dies is not None:
        cluster.crash(dies)
    assert OK is alter(cluster)
    cluster.pass_ms(2 * CHECK_MS)
    assert Assignment(replicas={0: (1, 2)}, made=cluster.mark()) == node(cluster) and () == listed(cluster)
    assert 1 == cluster.state().leader and {3, 4}.isdisjoint(holders(cluster))
    assert ErrorCode.NO_REASSIGNMENT_IN_PROGRESS is alter(cluster)


def test_cancelled_move_waits_for_a_replica_of_before_if_none_is_in_sync() -> None:
    """To give up the only replicas that have what is committed would lose it."""
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    for broker in (2, 1):
        cluster.crash(broker)
    cluster.produce(3, 1)
    assert OK is alter(cluster)
    cluster.pass_ms(3 * CHECK_MS)
    assert 3 == cluster.state().leader and {3, 4} <= set(holders(cluster))
    for broker in (1, 2):
        cluster.start(broker)
    cluster.release()
    cluster.pass_ms(3 * CHECK_MS)
    is_moved(cluster, 1, 2, records=RECORDS + 1)


def test_another_target_takes_the_place_of_the_first() -> None:
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    assert OK is alter(cluster, 2, 3)
    cluster.pass_ms(2 * CHECK_MS)
    is_moved(cluster, 2, 3)


@pytest.mark.parametrize(
    ("replicas", "tp", "to", "error"),
    [
        ((3, 3), TP, 5, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((3, 9), TP, 5, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((3, 4), TopicPartition("t", 7), 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((3, 4), TopicPartition("none", 0), 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((3, 4), TopicPartition("a/b", 0), 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((), TP, 5, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ((3, 4), TP, 1, ErrorCode.NOT_CONTROLLER),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(
    replicas: tuple[int, ...], tp: TopicPartition, to: int, error: ErrorCode
) -> None:
    cluster = cluster_of()
    before = node(cluster)
    assert error is alter(cluster, *replicas, tp=tp, to=to)
    assert before == node(cluster)


def test_partitions_are_added_to_a_topic_only_once_nothing_of_it_is_moved() -> None:
    """Source: Kafka, AdminManager.createPartitions: REASSIGNMENT_IN_PROGRESS."""
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    more = CreatePartitionsRequest(topics=(MorePartitions(topic="t", count=2),), timeout_ms=1_000)
    (answer,) = cluster.ask(5, more)
    assert isinstance(answer, TopicErrors) and answer.errors[0][1] is ErrorCode.REASSIGNMENT_IN_PROGRESS
    cluster.release()
    cluster.pass_ms(2 * CHECK_MS)
    (answer,) = cluster.ask(5, more)
    assert isinstance(answer, TopicErrors) and answer.errors[0][1] is OK
    assert {0, 1} == node(cluster).replicas.keys()


def test_topic_that_is_deleted_while_it_is_moved_leaves_no_replica() -> None:
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    assert [1, 2, 3, 4] == holders(cluster)
    cluster.delete("t")
    assert [] == holders(cluster) and () == listed(cluster)


def test_so_many_are_moved_at_once_and_the_others_in_their_order() -> None:
    cluster = cluster_of(reassignments_max=1)
    cluster.zk.put(topic_path("u"), encode_assignment(dict.fromkeys(range(3), (1, 2))))
    cluster.benches[5].fire("/brokers/topics")
    cluster.settle()
    cluster.hold(3, 1, FetchRequest)
    many = tuple(WantedReplicas(tp=TopicPartition("u", at), replicas=(3, 4)) for at in range(3))
    cluster.ask(5, AlterReassignmentsRequest(partitions=many, timeout_ms=1_000))
    cluster.pass_ms(2 * CHECK_MS)
    has = decode_topic(cluster.zk.nodes[topic_path("u")].data)
    assert ({0: (1, 2, 3, 4), 1: (1, 2), 2: (1, 2)}, 3) == (has.replicas, len(has.moves))
    cluster.release()
    cluster.pass_ms(4 * CHECK_MS)
    assert Assignment(replicas=dict.fromkeys(range(3), (3, 4))) == decode_topic(
        cluster.zk.nodes[topic_path("u")].data
    )
