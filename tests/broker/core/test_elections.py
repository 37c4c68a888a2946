"""
Elections of preferred replicas, asked for and by time, and of anybody who is alive.

Source:  KIP-460; Kafka Replication Design V3, Paths 3: "The first replica is the preferred replica".
"""

from __future__ import annotations

import pytest

from targets.broker.core.events import Hungup
from targets.broker.core.messages import (
    ElectLeadersRequest,
    ErrorCode,
    FetchRequest,
    PartitionErrors,
    TopicPartition,
)
from targets.broker.core.zookeeper import leader_and_isr_path
from tests.broker.core.bench import TP, answers
from tests.broker.core.cluster import Cluster

OK = ErrorCode.NONE


def cluster_of(protocol: str = "kip380", **settings: int) -> Cluster:
    """Return a cluster where 3 is controller, and 2 leads a partition that prefers 1; both are in sync."""
    cluster = Cluster(protocol, brokers=(3, 1, 2), **settings)
    cluster.create(replicas=(1, 2))
    cluster.crash(1)
    cluster.start(1)
    cluster.produce(2)
    cluster.pass_ms(1_000)
    assert (2, {1, 2}) == (cluster.state().leader, set(cluster.state().isr))
    return cluster


def elect(
    cluster: Cluster, *partitions: TopicPartition, to: int = 3, unclean: bool = False
) -> dict[TopicPartition, ErrorCode]:
    """Ask for elections, of all partitions if none is named; return the error of each."""
    request = ElectLeadersRequest(partitions=partitions or None, timeout_ms=1_000, unclean=unclean)
    (answer,) = cluster.ask(to, request)
    assert isinstance(answer, PartitionErrors) and answer.error is OK
    return {tp: error for tp, error, _ in answer.errors}


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip320", "kip380"])
@pytest.mark.parametrize("named", [True, False])
def test_preferred_replica_is_elected_in_a_new_epoch_and_that_is_answered(protocol: str, named: bool) -> None:
    cluster = cluster_of(protocol)
    before = cluster.state().leader_epoch
    assert {TP: OK} == elect(cluster, *([TP] if named else []))
    assert (1, before + 1) == (cluster.state().leader, cluster.state().leader_epoch)
    assert {TP: ErrorCode.ELECTION_NOT_NEEDED} == elect(cluster, TP)
    assert before + 1 == cluster.state().leader_epoch


def test_preferred_replica_that_is_not_in_sync_is_not_elected() -> None:
    """A leader from outside the ISR loses what is committed."""
    cluster = Cluster("kip380", brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.crash(1)
    cluster.hold(1, 2, FetchRequest)
    cluster.start(1)
    assert {TP: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE} == elect(cluster, TP)
    assert 2 == cluster.state().leader


def test_what_is_not_there_is_unknown_and_another_broker_is_not_asked() -> None:
    cluster = cluster_of()
    nowhere = TopicPartition("none", 0)
    assert {TP: OK, nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} == elect(cluster, TP, nowhere)
    (answer,) = cluster.ask(1, ElectLeadersRequest(partitions=None, timeout_ms=1_000))
    assert isinstance(answer, PartitionErrors) and answer.error is ErrorCode.NOT_CONTROLLER


def test_election_is_written_under_the_version_that_is_there_whoever_wrote_it() -> None:
    """The leader changed the ISR since the controller read it: the write is refused, and decided again."""
    cluster = cluster_of()
    path = leader_and_isr_path(TP)
    node = cluster.zk.nodes[path]
    cluster.zk.put(path, node.data)
    assert cluster.zk.nodes[path].version > node.version
    assert {TP: OK} == elect(cluster)
    assert 1 == cluster.state().leader


@pytest.mark.parametrize("is_back", [False, True])
def test_anybody_who_is_alive_leads_only_where_nobody_does_and_if_that_is_asked_for(is_back: bool) -> None:
    """KIP-460: an unclean election by hand, with unclean.leader.election.enable off."""
    cluster = Cluster("kip380", brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.crash(2)
    cluster.produce(1)
    cluster.crash(1)
    assert -1 == cluster.state().leader
    assert {TP: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE} == elect(cluster, TP, unclean=True)
    cluster.start(2)
    assert -1 == cluster.state().leader
    if is_back:
        cluster.start(1)
        assert {TP: ErrorCode.ELECTION_NOT_NEEDED} == elect(cluster, TP, unclean=True)
        assert 1 == cluster.state().leader
    else:
        assert {TP: OK} == elect(cluster, TP, unclean=True)
        assert (2, (2,)) == (cluster.state().leader, cluster.state().isr)


def test_preferred_replicas_are_elected_by_time_if_that_is_set() -> None:
    """Kafka's auto.leader.rebalance.enable and leader.imbalance.check.interval.seconds."""
    cluster = cluster_of(preferred_leader_check_ms=5_000)
    cluster.pass_ms(5_000)
    assert 1 == cluster.state().leader
    epoch = cluster.state().leader_epoch
    cluster.pass_ms(10_000)
    assert epoch == cluster.state().leader_epoch and not cluster.benches[3].broker.state.elections
    never = cluster_of()
    never.pass_ms(20_000)
    assert 2 == never.state().leader


@pytest.mark.parametrize("hangs_up", [False, True])
def test_election_that_cannot_be_written_in_time_is_answered_so(hangs_up: bool) -> None:
    cluster = cluster_of()
    bench = cluster.benches[3]
    bench.hold(leader_and_isr_path(TP))
    assert [] == cluster.ask(3, ElectLeadersRequest(partitions=(TP,), timeout_ms=1_000))
    before = len(bench.effects)
    if hangs_up:
        bench.step(Hungup(connection=cluster._numbers))
    cluster.pass_ms(1_000)
    late = [each for each in answers(bench.effects[before:]) if isinstance(each, PartitionErrors)]
    expected = () if hangs_up else ((TP, ErrorCode.REQUEST_TIMED_OUT),)
    assert expected == tuple((tp, error) for each in late for tp, error, _ in each.errors)
    assert not bench.broker.state.elections
    bench.release()
    cluster.settle()
    assert ("elect-leaders",) not in {key[:1] for key, _ in bench.broker.state.timers.times()}
