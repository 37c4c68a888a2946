"""The controller: its decisions from the state in ZooKeeper (V3 A, B and D)."""

from __future__ import annotations

import pytest

from targets.broker.core.messages import LeaderAndIsr, LeaderAndIsrRequest, TopicPartition
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import (
    BROKER_TOPICS,
    broker_path,
    leader_and_isr_path,
)
from tests.broker.core.bench import TP, Bench
from tests.broker.core.cluster import Cluster, cluster_of

STATE = leader_and_isr_path(TP)
L, F, N = Role.LEADER, Role.FOLLOWER, Role.NONE


def inits(bench: Bench) -> dict[int, list[LeaderAndIsr]]:
    """Return the partitions that a controller sent with INIT, by receiver."""
    found = [(send.to, send.request) for send in bench.sent()]
    return {to: list(r.partitions) for to, r in found if isinstance(r, LeaderAndIsrRequest) and r.is_init}


def elected(cluster: Cluster) -> list[tuple[int, int, list[int], bool]]:
    """Return leader, epoch, ISR and uncleanness of every decision by the running brokers."""
    seen = [value for bench in cluster.benches.values() for value in bench.observed("elected")]
    return [(v["leader"], v["epoch"], v["isr"], v["unclean"]) for v in seen]


def decided(cluster: Cluster) -> tuple[int, int, tuple[int, ...]]:
    """Return leader, epoch and ISR in ZooKeeper."""
    state = cluster.state()
    return state.leader, state.leader_epoch, state.isr


# --- a new controller --------------------------------------------------------------------------------------
def test_new_controller_tells_every_broker_with_init_what_zookeeper_holds() -> None:
    """Source: Kafka Replication Design V3, D 3 and 4: "with a special flag INIT [...] for each partition"."""
    cluster = cluster_of()
    cluster.start(4)
    cluster.create("u", replicas=(2, 4))
    cluster.crash(3)
    controller = cluster.benches[cluster.controller]
    told = inits(controller)
    found = {to: [(p.tp.topic, p.leader, p.leader_epoch, p.isr) for p in parts] for to, parts in told.items()}
    t, u = ("t", 1, 0, (1, 2)), ("u", 2, 0, (2, 4))
    assert {1: [t], 2: [t, u], 4: [u]} == found  # itself too, over the network like all others


def test_new_controller_names_partitions_without_a_state_so_that_nobody_deletes_them() -> None:
    """
    INIT deletes every partition that it does not name, so one that has no leader yet is named with epoch -1.

    Source: Kafka Replication Design V3, D 3 and 4.
    """
    cluster = cluster_of()
    cluster.benches[3].hold(leader_and_isr_path(TopicPartition("u", 0)), writes=True)
    cluster.create("u", replicas=(2,))
    cluster.crash(3)
    (mine,) = [p for p in inits(cluster.benches[1])[2] if p.tp.topic == "u"]
    assert (mine.leader, mine.leader_epoch, mine.isr) == (-1, -1, ())
    assert cluster.roles(TopicPartition("u", 0)) == {2: (L, 0)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_new_controller_tells_no_leader_of_the_epoch_that_it_awaits_the_end_of(protocol: str) -> None:
    """Source: KIP-101, returning leaders: a new process that learned of this epoch would lead it again."""
    cluster = cluster_of(protocol)
    cluster.stop(1)
    cluster.crash(3)
    (mine,) = inits(cluster.benches[2])[1]
    assert ((1, 0) if protocol == "hw" else (-1, -1)) == (mine.leader, mine.leader_epoch)
    assert mine.replicas == (1, 2)


@pytest.mark.parametrize(("protocol", "epoch"), [(protocol, int(protocol != "hw")) for protocol in PROTOCOLS])
def test_controller_that_takes_office_gives_every_led_partition_a_new_epoch(protocol: str, epoch: int) -> None:
    """Source: KIP-101, returning leaders: for a new controller every registration is one that appears."""
    cluster = cluster_of(protocol)
    cluster.crash(3)
    assert decided(cluster) == (1, epoch, (1, 2))
    assert cluster.roles() == {1: (L, epoch), 2: (F, epoch)}


def test_new_controller_finishes_what_the_old_one_left() -> None:
    """Source: Kafka Replication Design V3, D 5: "call on_broker_change()"."""
    cluster = cluster_of(replicas=(2, 1))
    leader, controller = cluster.stop(2), cluster.stop(3)
    cluster.expire(leader)
    assert decided(cluster) == (2, 0, (2, 1))
    cluster.expire(controller)
    assert decided(cluster) == (1, 1, (1,))


# --- on_broker_change --------------------------------------------------------------------------------------
def test_controller_tells_whose_registrations_it_saw_when_it_decided() -> None:
    """A checker of losses needs to know whether the decision could take a broker's return into account."""
    cluster = cluster_of()
    cluster.crash(1)
    told = cluster.benches[3].observed("elected")[-1]
    assert told["leader"] == 2
    assert told["saw"] == [[broker, cluster.zk.nodes[broker_path(broker)].czxid] for broker in (2, 3)]


def test_leader_that_died_is_followed_by_a_live_member_of_the_isr() -> None:
    """Source: Kafka Replication Design V3, A 1, 3.2, 3.3 and 4: "a new epoc (increase current epoc by 1)"."""
    cluster = cluster_of(replicas=(1, 2, 3))
    cluster.crash(1)
    assert decided(cluster) == (2, 1, (2, 3))
    assert cluster.roles() == {2: (L, 1), 3: (F, 1)}
    assert (2, 1, [2, 3], False) in elected(cluster)


def test_follower_that_died_leaves_the_isr_and_the_leader_stays() -> None:
    """Source: Kafka Replication Design V3, A 2: "or whose ISR will change because a broker is down"."""
    cluster = cluster_of()
    cluster.crash(2)
    assert decided(cluster) == (1, 1, (1,))
    assert cluster.replica(1).isr == (1,)


def test_broker_that_holds_nothing_changes_nothing_when_it_dies() -> None:
    """Source: Kafka Replication Design V3, A 2."""
    cluster = cluster_of()
    cluster.start(4)
    cluster.crash(4)
    assert decided(cluster) == (1, 0, (1, 2))


def test_partition_whose_isr_is_gone_has_no_leader_until_one_of_it_returns() -> None:
    """Source: Kafka Replication Design V3, A 3.2: "set the new leader to -1"; its last member stays in the ISR."""
    cluster = cluster_of()
    cluster.crash(2)
    cluster.crash(1)
    assert decided(cluster) == (-1, 2, (1,))
    cluster.start(2)
    assert (decided(cluster), cluster.roles()) == ((-1, 2, (1,)), {2: (N, 2)})
    cluster.start(1)
    assert (decided(cluster)[:2], cluster.roles()) == ((1, 3), {1: (L, 3), 2: (F, 3)})


def test_unclean_election_takes_any_replica_and_says_so() -> None:
    """Source: Kafka Replication Design V3, A 3.2: "select one of the live brokers in AR"."""
    cluster = cluster_of(unclean_election=True)
    cluster.produce(1, 3)
    cluster.crash(2)
    cluster.produce(1, 2)
    cluster.crash(1)
    cluster.start(2)
    assert (decided(cluster), cluster.roles()) == ((2, 3, (2,)), {2: (L, 3)})
    assert (2, 3, [2], True) in elected(cluster)


# --- new and deleted topics --------------------------------------------------------------------------------
def test_new_partition_gets_its_first_leader_and_all_live_replicas_as_isr() -> None:
    """Source: Kafka Replication Design V3, on_topic_change 1, init_leaders 1.1, 1.2 and 2."""
    cluster = cluster_of(replicas=(2, 1))
    assert (decided(cluster), cluster.roles()) == ((2, 0, (2, 1)), {2: (L, 0), 1: (F, 0)})
    assert cluster.state().controller_epoch == 1


def test_new_partition_waits_until_one_of_its_replicas_lives() -> None:
    """Source: Kafka Replication Design V3, B and D 6: "for the list of partitions without a leader"."""
    cluster = cluster_of()
    cluster.benches[3].hold(BROKER_TOPICS)
    cluster.create("u", replicas=(2,))
    cluster.crash(2)
    cluster.benches[3].release()
    cluster.settle()
    u = TopicPartition("u", 0)
    assert leader_and_isr_path(u) not in cluster.zk.nodes
    cluster.start(2)
    assert (cluster.state(u).leader, cluster.state(u).leader_epoch, cluster.roles(u)) == (2, 0, {2: (L, 0)})


def test_deleted_topic_is_stopped_on_every_live_broker() -> None:
    """Source: Kafka Replication Design V3, B, on_topic_change 2: "send the StopReplicaCommand"."""
    cluster = cluster_of(replicas=(1, 2, 3))
    logs = [cluster.replica(broker).log for broker in (1, 2, 3)]
    cluster.create("u", replicas=(1, 2))
    cluster.delete("t")
    assert [True] * 3 == [getattr(log, "deleted", None) for log in logs]
    assert (cluster.roles(), len(cluster.roles(TopicPartition("u", 0)))) == ({}, 2)


# --- writes ------------------------------------------------------------------------------------------------
def test_isr_that_the_leader_changed_meanwhile_is_read_again_and_not_overwritten() -> None:
    """Source: Kafka Replication Design V3, A 3.3: "If the version [...] has changed [...], go back"."""
    cluster = Cluster("hw", brokers=(3, 1, 2, 4))
    cluster.create(replicas=(1, 2, 4))
    cluster.benches[3].hold(STATE, writes=True)
    cluster.crash(4)
    cluster.zk.put_state(1, 0, (1, 4))  # the leader removed 2
    cluster.benches[3].release()
    cluster.settle()
    assert (decided(cluster), cluster.state().zk_version) == ((1, 1, (1,)), 2)
    assert cluster.replica(1).isr == (1,)


def test_deposed_controller_cannot_write() -> None:
    """Source: KAFKA-6082: every write checks the controller epoch. Here it is deposed without knowing it yet."""
    cluster = cluster_of()
    deposed = cluster.benches[3]
    deposed.hold(STATE, writes=True)
    cluster.crash(2)
    assert len(deposed.held) == 1
    cluster.zk.close_session(deposed.session)
    cluster.start(2)
    # The state is as the deposed controller read it: only the controller epoch shows that it may not write.
    assert (cluster.in_office, decided(cluster), cluster.state().zk_version) == ([3, 2], (1, 0, (1, 2)), 0)
    sent = len(deposed.sent())
    deposed.release()
    assert decided(cluster) == (1, 0, (1, 2))
    # It reads again, and tells what stands there, which is nothing new to anybody.
    told = [send.request for send in deposed.sent()[sent:]]
    assert {0} >= {state.leader_epoch for request in told for state in request.partitions}  # type: ignore[union-attr]


@pytest.mark.parametrize("happened", [True, False])
def test_decision_whose_answer_was_lost_is_commanded_once_it_stands(happened: bool) -> None:
    """The brokers must receive the command either way: no other message names the new leader."""
    cluster = cluster_of()
    cluster.benches[3].lose(STATE, happened=happened, writes=True)
    cluster.crash(1)
    assert cluster.roles() == {2: (F, 0)}
    cluster.pass_ms(1_000)
    assert (decided(cluster), cluster.roles()) == ((2, 1, (2,)), {2: (L, 1)})
    assert elected(cluster).count((2, 1, [2], False)) == 1


def test_reading_asked_for_while_one_is_under_way_is_made_after_it() -> None:
    cluster = cluster_of()
    bench = cluster.benches[3]
    bench.hold(STATE)
    cluster.crash(1)
    dead = cluster.stop(2)
    cluster.zk.close_session(dead)
    cluster.settle()
    assert len(bench.held) == 1
    bench.release()
    cluster.settle()
    assert decided(cluster)[0] == -1
    assert broker_path(2) not in cluster.zk.nodes
