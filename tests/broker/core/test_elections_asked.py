"""
An operator requests a leader: a node in ZooKeeper, consumed once, moves leadership without a failure.

Source:  Kafka's preferred replica election, which works the same way; here any member of the ISR may be requested.
"""

from __future__ import annotations

import pytest

from targets.broker.core.election import Decision, asked_for
from targets.broker.core.messages import TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.wishes import Wishes, decode_wishes, encode_wishes
from targets.broker.core.zookeeper import CONTROLLER, ELECTIONS, PartitionState, leader_and_isr_path
from tests.broker.core.bench import TP
from tests.broker.core.cluster import Cluster

L, F = Role.LEADER, Role.FOLLOWER
OTHER = TopicPartition("u", 0)


def cluster_of(protocol: str = "kip320") -> Cluster:
    """Return a cluster where broker 4 is controller, 1, 2 and 3 hold the partition, and 1 leads it."""
    cluster = Cluster(protocol, brokers=(4, 1, 2, 3))
    cluster.create(replicas=(1, 2, 3))
    return cluster


def ask(cluster: Cluster, wanted: dict[TopicPartition, int]) -> None:
    cluster.zk.put(ELECTIONS, encode_wishes(Wishes(elections=wanted)))
    cluster.settle()


def decided(cluster: Cluster, tp: TopicPartition = TP) -> tuple[int, int, tuple[int, ...]]:
    state = cluster.state(tp)
    return state.leader, state.leader_epoch, state.isr


@pytest.mark.parametrize(
    ("leader", "live", "expected"),
    [
        pytest.param(2, {1, 2, 3}, Decision(leader=2, leader_epoch=5, isr=(1, 2)), id="a member of the ISR"),
        pytest.param(1, {1, 2, 3}, None, id="it leads already"),
        pytest.param(3, {1, 2, 3}, None, id="out of the ISR"),
        pytest.param(2, {1, 3}, None, id="not alive"),
        pytest.param(2, {2, 3}, Decision(leader=2, leader_epoch=5, isr=(2,)), id="while the leader died"),
    ],
)
def test_only_another_live_member_of_the_isr_can_be_asked_for(
    leader: int, live: set[int], expected: Decision | None
) -> None:
    state = PartitionState(leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=1, zk_version=3)
    assert expected == asked_for(state, live, leader)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_leadership_moves_in_a_new_epoch_and_the_isr_stays(protocol: str) -> None:
    cluster = cluster_of(protocol)
    cluster.produce(1, crc=11)
    for epoch, leader in enumerate((2, 3, 1), start=1):
        ask(cluster, {TP: leader})
        assert decided(cluster) == (leader, epoch, (1, 2, 3))
        assert cluster.roles() == {broker: (L if broker == leader else F, epoch) for broker in (1, 2, 3)}
        assert ELECTIONS not in cluster.zk.nodes
        cluster.pass_ms(2_000)
        assert len(cluster.produce(leader, crc=11 + epoch)) == 1
    logs = [cluster.replica(broker).log.read(0, 9, 10**9) for broker in (1, 2, 3)]
    assert [[item.crc for item in log] for log in logs] == [[11, 12, 13, 14]] * 3


def test_several_partitions_are_asked_for_at_once_and_each_is_decided_by_itself() -> None:
    cluster = cluster_of()
    cluster.create("u", replicas=(3, 1))
    ask(cluster, {TP: 2, OTHER: 2, TopicPartition("gone", 0): 1})
    assert (decided(cluster), decided(cluster, OTHER)) == ((2, 1, (1, 2, 3)), (3, 0, (3, 1)))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"elections": [{"topic": "t"}]}', b'{"elections": 3}'])
def test_node_that_nobody_can_read_is_taken_away_and_changes_nothing(data: bytes) -> None:
    cluster = cluster_of()
    cluster.zk.put(ELECTIONS, data)
    cluster.settle()
    assert (decode_wishes(data), decided(cluster)) == (Wishes(), (1, 0, (1, 2, 3)))
    assert ELECTIONS not in cluster.zk.nodes
    ask(cluster, {TP: 2})
    assert decided(cluster)[0] == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_asked_for_while_nobody_was_in_office_is_decided_by_the_next_controller(protocol: str) -> None:
    """A new controller gives every partition with a leader a new epoch anyway; the requested leader gets it."""
    cluster = cluster_of(protocol)
    session = cluster.stop(4)
    ask(cluster, {TP: 3})
    assert decided(cluster) == (1, 0, (1, 2, 3))
    cluster.expire(session)
    assert (decided(cluster), ELECTIONS in cluster.zk.nodes) == ((3, 1, (1, 2, 3)), False)


@pytest.mark.parametrize("wanted", [2, 3])
def test_leader_asked_for_in_the_reading_that_sees_another_die_leads_without_it(wanted: int) -> None:
    cluster = cluster_of()
    cluster.zk.close_session(cluster.stop(1))
    ask(cluster, {TP: wanted})
    assert decided(cluster) == (wanted, 1, (2, 3))


def test_deposed_controller_does_not_take_what_was_asked_for() -> None:
    """Source: KAFKA-6082. It does not know yet that it is deposed, and reads the node before its successor."""
    cluster = cluster_of()
    deposed = cluster.benches[4]
    for bench in (deposed, *[cluster.benches[broker] for broker in (1, 2, 3)]):
        bench.hold(CONTROLLER)
    cluster.zk.remove(CONTROLLER)
    cluster.zk.put("/controller_epoch", b"2")
    ask(cluster, {TP: 2})
    assert (decided(cluster), ELECTIONS in cluster.zk.nodes) == ((1, 0, (1, 2, 3)), True)
    for bench in cluster.benches.values():
        bench.release()
    cluster.settle()
    cluster.pass_ms(2_000)
    assert (decided(cluster)[0], ELECTIONS in cluster.zk.nodes) == (2, False)


def test_isr_that_changes_meanwhile_refuses_the_election_that_read_the_older_one() -> None:
    """Source: Kafka Replication Design V3, A 3.3. The request is consumed; its sender sees the same leader."""
    cluster = cluster_of()
    controller = cluster.benches[4]
    controller.hold(leader_and_isr_path(TP), writes=True)
    ask(cluster, {TP: 2})
    cluster.zk.put_state(1, 0, (1, 3))
    controller.release()
    cluster.settle()
    cluster.pass_ms(1_000)
    assert decided(cluster) == (1, 0, (1, 3))


@pytest.mark.parametrize("happened", [False, True], ids=["not written", "written"])
def test_election_whose_write_is_lost_is_decided_again_and_happens_once(happened: bool) -> None:
    """The operator's node is gone by then: nothing else would ask for it again."""
    cluster = cluster_of()
    cluster.benches[4].lose(leader_and_isr_path(TP), happened=happened, writes=True)
    ask(cluster, {TP: 2})
    assert ELECTIONS not in cluster.zk.nodes
    cluster.pass_ms(2_000)
    assert decided(cluster) == (2, 1, (1, 2, 3))
    assert (L, 1) == cluster.roles()[2]
    ask(cluster, {TP: 3})
    cluster.pass_ms(2_000)
    assert decided(cluster) == (3, 2, (1, 2, 3)), "whom it wanted first is not wanted any more"
