"""
A broker that is asked to end: others lead what it leads before it does, or its time is up.

Source:  Kafka's controlled shutdown (KafkaServer.controlledShutdown).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.events import Leave, Left
from targets.broker.core.messages import LeaderAndIsrRequest, TopicPartition
from targets.broker.core.state import Role
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import ELECTIONS
from tests.broker.core.bench import TP
from tests.broker.core.cluster import Cluster

LEAVE_MS = 5_000


def cluster_of(protocol: str = "kip380") -> Cluster:
    """Return a cluster where 3 is controller, and 1 leads a partition that 2 follows."""
    cluster = Cluster(protocol, brokers=(3, 1, 2), controlled_shutdown_ms=LEAVE_MS)
    cluster.create(replicas=(1, 2))
    cluster.produce(1)
    return cluster


def leave(cluster: Cluster, broker: int = 1) -> None:
    cluster.benches[broker].step(Leave())
    cluster.settle()


def has_left(cluster: Cluster, broker: int = 1) -> bool:
    return any(isinstance(effect, Left) for effect in cluster.benches[broker].effects)


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip320", "kip380"])
def test_broker_leaves_once_another_leads_what_it_led(protocol: str) -> None:
    cluster = cluster_of(protocol)
    leave(cluster)
    assert has_left(cluster)
    assert (2, (2,)) == (cluster.state().leader, cluster.state().isr)
    assert Role.FOLLOWER is cluster.replica(1).role


def test_one_election_leads_on_and_shrinks_the_isr() -> None:
    """Its end changes nothing then: no record waits for a second election."""
    cluster = cluster_of()
    epoch = cluster.state().leader_epoch
    leave(cluster)
    cluster.crash(1)
    assert (epoch + 1, (2,)) == (cluster.state().leader_epoch, cluster.state().isr)
    cluster.produce(2)
    assert cluster.replica(2).log.end_offset == cluster.replica(2).high_watermark > 1


@pytest.mark.parametrize("protocol", ["hw", "kip279", "kip320", "kip380"])
def test_broker_that_leaves_is_not_taken_back(protocol: str) -> None:
    """It also follows; out of that ISR too, it fetches no more (KAFKA-14140), while its own partition keeps it."""
    cluster = cluster_of(protocol)
    cluster.create("u", replicas=(2, 1))
    cluster.create("v", replicas=(1,))
    cluster.hold(3, 1, LeaderAndIsrRequest)
    leave(cluster)
    assert [(2,), (2,), (1,)] == [cluster.state(TopicPartition(of, 0)).isr for of in (TP.topic, "u", "v")]
    cluster.release()
    cluster.produce(2)
    cluster.pass_ms(2_000)
    assert (2,) == cluster.state().isr


def test_broker_serves_until_it_has_heard_who_leads() -> None:
    cluster = cluster_of()
    cluster.hold(3, 1, LeaderAndIsrRequest)
    leave(cluster)
    assert 2 == cluster.state().leader and not has_left(cluster)
    cluster.release()
    assert has_left(cluster)


def test_broker_that_alone_is_in_sync_ends_at_once() -> None:
    """Nobody else could lead without losing what is committed."""
    cluster = cluster_of()
    cluster.crash(2)
    assert (1,) == cluster.state().isr
    leave(cluster)
    assert has_left(cluster) and 1 == cluster.state().leader


def test_broker_leaves_when_its_time_is_up() -> None:
    cluster = cluster_of()
    cluster.hold(3, 1, LeaderAndIsrRequest)
    leave(cluster)
    cluster.pass_ms(LEAVE_MS - 100)
    assert not has_left(cluster)
    cluster.pass_ms(100)
    assert has_left(cluster)


def test_what_others_asked_for_stands_beside_it() -> None:
    cluster = cluster_of()
    other = TopicPartition("u", 0)
    wanted = Wishes(elections={other: 2}, moves={other: (1, 2)})
    bench = cluster.benches[3]
    bench.hold(ELECTIONS)
    cluster.zk.put(ELECTIONS, encode_wishes(wanted))
    leave(cluster)
    asked = cluster.zk.nodes[ELECTIONS].data
    assert encode_wishes(replace(wanted, leaving=frozenset({1}))) == asked


def test_reassignment_that_is_taken_leaves_it_there() -> None:
    cluster = cluster_of()
    bench = cluster.benches[3]
    bench.hold(ELECTIONS)
    cluster.zk.put(ELECTIONS, encode_wishes(Wishes(moves={TP: (2, 1)})))
    leave(cluster)
    bench.release()
    cluster.settle()
    assert has_left(cluster) and (2, (2,)) == (cluster.state().leader, cluster.state().isr)


def test_election_that_is_refused_is_asked_for_again() -> None:
    """The member of the ISR that was to lead dies meanwhile; the next one leads."""
    cluster = Cluster("kip380", brokers=(4, 1, 2, 3), controlled_shutdown_ms=LEAVE_MS)
    cluster.create(replicas=(1, 2, 3))
    cluster.produce(1)
    session = cluster.stop(2)
    cluster.benches[4].hold("/brokers/ids")
    cluster.expire(session)
    leave(cluster)
    cluster.benches[4].release()
    cluster.pass_ms(2_000)
    assert has_left(cluster) and 3 == cluster.state().leader
