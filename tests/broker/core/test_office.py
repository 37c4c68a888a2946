"""Who is in office: elections of the controller, and what an answer may do that outlives its office (V3 D)."""

from __future__ import annotations

import pytest

from targets.broker.core.events import ZkAsk, ZkSession
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    leader_and_isr_path,
    topic_path,
)
from tests.broker.core.bench import TP, Bench
from tests.broker.core.cluster import Cluster, cluster_of

STATE = leader_and_isr_path(TP)


def test_first_broker_takes_office_and_every_broker_watches() -> None:
    """Source: Kafka Replication Design V3, Paths 1 and D 1 and 2."""
    cluster = Cluster(brokers=(3, 1, 2))
    assert (cluster.controller, cluster.in_office) == (3, [3])
    assert cluster.zk.nodes[CONTROLLER_EPOCH].data == b"1"
    assert [{"epoch": 1, "active": True}] == cluster.benches[3].observed("controller")
    sessions = sorted(bench.session for bench in cluster.benches.values())
    assert sessions == sorted(watch[2] for watch in cluster.zk.watches if watch[1] == CONTROLLER)


def test_another_broker_takes_office_in_a_higher_epoch_when_the_controller_dies() -> None:
    """Source: Kafka Replication Design V3, D: "Each broker sets an exists watcher on the ControllerPath"."""
    cluster = Cluster(brokers=(3, 1, 2))
    epochs = []
    for victim in (3, 1):
        cluster.crash(victim)
        assert [cluster.controller] == cluster.in_office
        epochs.append(int(cluster.zk.nodes[CONTROLLER_EPOCH].data))
    assert epochs == [2, 3]


def test_exactly_one_broker_is_in_office_however_often_the_office_is_lost() -> None:
    """On each loss all brokers stand for election at once; the winner does not resign, and no watch piles up."""
    cluster = Cluster(brokers=())
    cluster.zk.callbacks_differ = True
    for broker in (3, 1, 2):
        cluster.start(broker)
    winners = set()
    for epoch in range(2, 12):
        cluster.zk.remove(CONTROLLER)
        cluster.settle()
        winners.add(cluster.controller)
        assert [cluster.controller] == cluster.in_office
        assert str(epoch).encode() == cluster.zk.nodes[CONTROLLER_EPOCH].data
        assert len([watch for watch in cluster.zk.watches if watch[1] == CONTROLLER]) == 3
    assert len(winners) > 1


def test_brokers_that_stand_at_once_leave_one_controller_and_one_watch_each() -> None:
    """A slower broker already has a watch, fired by the winner's node: a second look would add another."""
    cluster = Cluster(brokers=(3, 1, 2))
    cluster.zk.callbacks_differ = True
    for bench in cluster.benches.values():
        bench.hold(CONTROLLER, writes=True)
    cluster.zk.remove(CONTROLLER)
    cluster.settle()
    assert [1, 1, 1] == [len(bench.held) for bench in cluster.benches.values()]
    for bench in cluster.benches.values():
        bench.release()
    cluster.settle()
    assert (cluster.in_office, cluster.controller) == ([3], 3)
    sessions = sorted(bench.session for bench in cluster.benches.values())
    assert sessions == sorted(watch[2] for watch in cluster.zk.watches if watch[1] == CONTROLLER)


def test_watch_that_fires_twice_does_not_cost_the_office() -> None:
    cluster = cluster_of()
    bench = cluster.benches[3]
    bench.hold(CONTROLLER)
    cluster.zk.remove(CONTROLLER)
    cluster.benches = {3: bench}
    cluster.settle()
    bench.fire(CONTROLLER)
    bench.release()
    cluster.settle()
    assert [cluster.controller] == cluster.in_office == [3]


@pytest.mark.parametrize("happened", [True, False], ids=["was won after all", "was not won"])
def test_election_whose_answer_was_lost(happened: bool) -> None:
    """Source: Kafka's KafkaZkClient: after a lost connection /controller shows whether the election was won."""
    cluster = Cluster(brokers=())
    bench = Bench("hw", 1, cluster.zk)
    cluster.benches[1] = bench
    bench.lose(CONTROLLER, happened=happened, writes=True)
    bench.start(session=5)
    cluster.settle()
    assert (cluster.controller, cluster.in_office) == (1, [1])
    # One election either way: a second one would have raised the epoch again.
    assert cluster.zk.nodes[CONTROLLER_EPOCH].data == b"1"
    assert [1] == [seen["epoch"] for seen in bench.observed("controller")]


def test_look_whose_answer_was_lost_is_taken_again() -> None:
    cluster = Cluster(brokers=())
    bench = cluster.benches[1] = Bench("hw", 1, cluster.zk)
    bench.lose(CONTROLLER, happened=False)
    bench.start(session=5)
    assert cluster.in_office == []
    cluster.pass_ms(500)
    assert cluster.in_office == [1]


def test_controller_that_only_lost_its_connection_stays_in_office() -> None:
    cluster = cluster_of()
    bench = cluster.benches[3]
    bench.lose(BROKER_IDS, happened=False)
    bench.fire(BROKER_IDS)
    bench.lose(CONTROLLER, happened=False)
    bench.fire(CONTROLLER)
    cluster.pass_ms(1_000)
    assert (cluster.in_office, cluster.zk.nodes[CONTROLLER_EPOCH].data) == ([3], b"1")
    cluster.crash(1)
    state = cluster.state()
    assert (state.leader, state.leader_epoch, state.isr) == (2, 1, (2,))


def test_controller_whose_session_ended_leaves_office() -> None:
    cluster = cluster_of()
    bench = cluster.benches[3]
    cluster.expire(bench.session)
    assert cluster.in_office == [3, cluster.controller]
    bench.session = 0
    bench.step(ZkSession(session=0))
    assert [cluster.controller] == cluster.in_office
    assert [True, False] == [seen["active"] for seen in bench.observed("controller")]


def with_a_reading_held(path: str) -> tuple[Cluster, Bench]:
    """Return a cluster whose controller awaits the part of a reading that is about this path."""
    cluster = cluster_of()
    bench = cluster.benches[3]
    cluster.zk.put(topic_path("t"), cluster.zk.nodes[topic_path("t")].data)  # so that its states are read
    bench.hold(path)
    bench.fire(BROKER_TOPICS)
    assert len(bench.held) == 1
    return cluster, bench


@pytest.mark.parametrize("path", [BROKER_TOPICS, topic_path("t"), STATE])
def test_reading_that_outlives_its_office_decides_nothing(path: str) -> None:
    """
    A controller deposed while it reads ZooKeeper neither writes nor sends commands at the end of the reading.

    A deposed controller has no epoch to check against, and ZooKeeper accepts version -1 as "any".

    Source: KAFKA-6082.
    """
    cluster, deposed = with_a_reading_held(path)
    cluster.zk.remove(CONTROLLER)
    cluster.zk.due.sort(reverse=True)  # the others are notified first
    cluster.settle()
    assert (cluster.in_office, deposed.broker.state.controller.active) == ([2], False)
    cluster.zk.put_state(1, 0, (1, 2, 7))  # something to decide on
    before, sent = cluster.zk.zxid, len(deposed.sent())
    deposed.release()
    assert (cluster.zk.zxid, len(deposed.sent())) == (before, sent)


def test_reading_that_outlives_its_office_does_nothing_in_the_next_one() -> None:
    """Whether the next office is still the newest is for that one's own readings to find out."""
    cluster, bench = with_a_reading_held(STATE)
    cluster.benches = {3: bench}
    cluster.zk.remove(CONTROLLER)
    cluster.settle()
    assert (bench.broker.state.controller.epoch, len(bench.held)) == (2, 2)
    bench.command(leader=1, epoch=5, replicas=(1, 2, 3), controller_epoch=9)
    del bench.held[1:]
    assert not [effect for effect in bench.release() if isinstance(effect, ZkAsk)]
