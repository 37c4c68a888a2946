"""
A broker that was not registered while a topic was deleted is told when it is again, though its process lived on.

Nothing that it reads by itself says so: only a process that starts reads which replicas it is to have (V3 E).
Source:  Kafka Replication Design V3, B (on_topic_change) and C, 3 (INIT); Kafka's TopicDeletionManager.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core import command_queue
from targets.broker.core.assignments import decode_topic
from targets.broker.core.events import ZkSession
from targets.broker.core.messages import NO_TOPIC_ID, LeaderAndIsrRequest, StopReplica, StopReplicaRequest
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import BROKER_IDS, BROKER_TOPICS, ELECTIONS, topic_path
from tests.broker.core.bench import TP
from tests.broker.core.cluster import Cluster

NAMELESS = replace(PROTOCOLS["kip380"], topic_identity=False)


def cluster_of(rules: str | Rules = "kip380") -> Cluster:
    """Return a cluster where broker 3 is controller, and 1 and 2 have a replica of the only partition."""
    cluster = Cluster(rules, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    assert {1, 2} == cluster.roles().keys()
    return cluster


def leave(cluster: Cluster, broker: int) -> None:
    """End a broker's session; its process lives on, and notices."""
    bench = cluster.benches[broker]
    cluster.expire(bench.session)
    bench.session = 0
    bench.step(ZkSession(session=0))
    cluster.settle()
    assert not cluster.registered(broker)


def come_back(cluster: Cluster, broker: int) -> None:
    """Give a broker a new session, in which it registers again."""
    bench = cluster.benches[broker]
    bench.session = cluster.new_session()
    bench.step(ZkSession(session=bench.session))
    cluster.settle()
    assert cluster.registered(broker)


def holders(cluster: Cluster) -> list[int]:
    return sorted(id_ for id_, bench in cluster.benches.items() if TP in bench.broker.state.replicas)


def stops(cluster: Cluster, to: int) -> list[StopReplica]:
    """Return what the brokers were told to stop on one broker."""
    sent = [send for bench in cluster.benches.values() for send in bench.sent() if send.to == to]
    return [
        each for send in sent if isinstance(send.request, StopReplicaRequest) for each in send.request.partitions
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broker_that_missed_a_deletion_stops_its_replica_when_it_registers_again(protocol: str) -> None:
    cluster = cluster_of(protocol)
    leave(cluster, 2)
    cluster.delete("t")
    assert [2] == holders(cluster)
    come_back(cluster, 2)
    assert [] == holders(cluster)


def test_command_that_waited_for_a_broker_which_then_left_is_sent_when_it_is_back() -> None:
    cluster = cluster_of()
    cluster.hold(3, 2, StopReplicaRequest)
    cluster.delete("t")
    assert [2] == holders(cluster)
    leave(cluster, 2)
    come_back(cluster, 2)
    assert 2 == len(stops(cluster, 2))
    cluster.release()  # the first is for an older registration, and refused
    assert [] == holders(cluster)


def test_command_that_is_refused_as_it_names_an_older_registration_is_sent_again() -> None:
    """The broker registered anew before the controller noticed; the refusal must not end the deletion."""
    cluster = cluster_of()
    cluster.hold(3, 2, StopReplicaRequest)
    cluster.delete("t")
    cluster.benches[3].hold(BROKER_IDS)
    leave(cluster, 2)
    come_back(cluster, 2)
    cluster.release()
    assert [2] == holders(cluster)
    assert [TP] == list(cluster.benches[3].broker.state.controller.unstopped[2])
    cluster.benches[3].release()
    cluster.settle()
    assert [] == holders(cluster)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_deletion_that_is_read_with_the_return_is_not_replaced_by_the_one_that_was_missed(protocol: str) -> None:
    """One reading finds a broker back that missed a deletion, and the next topic of that name gone; seed 1625."""
    cluster = cluster_of(protocol)
    session = cluster.stop(2)
    cluster.delete("t")
    cluster.create(replicas=(1, 2))
    cluster.expire(session)
    cluster.benches[3].hold(BROKER_IDS)
    cluster.start(2)
    assert [1, 2] == holders(cluster)
    cluster.delete("t")
    cluster.benches[3].release()
    cluster.settle()
    assert [] == holders(cluster)


def test_topic_that_no_controller_has_seen_leaves_no_replica_where_it_was_read_at_a_start() -> None:
    """It may be deleted before a controller sees it, and then no one would say so."""
    cluster = cluster_of()
    cluster.benches[3].hold(BROKER_TOPICS)
    cluster.delete("t")
    cluster.create(replicas=(1, 2))
    cluster.crash(2)
    cluster.start(2)
    assert [1] == holders(cluster)
    cluster.delete("t")
    cluster.benches[3].release()
    cluster.settle()
    assert [] == holders(cluster)


def test_broker_that_missed_a_deletion_under_an_earlier_controller_is_told_all() -> None:
    """The next controller never knew the topic: it names all that there is (INIT)."""
    cluster = cluster_of()
    leave(cluster, 2)
    cluster.delete("t")
    cluster.crash(3)
    assert [2] == holders(cluster)
    come_back(cluster, 2)
    assert [] == holders(cluster)


@pytest.mark.parametrize("noticed", [True, False])
def test_broker_that_left_before_it_was_told_all_is_told_all_when_it_is_back(*, noticed: bool) -> None:
    """The INIT of a new controller did not reach it, or was refused, as it names an older registration."""
    cluster = cluster_of()
    cluster.hold(3, 2, StopReplicaRequest)
    cluster.delete("t")
    cluster.hold(1, 2, LeaderAndIsrRequest)
    cluster.crash(3)
    assert [1] == cluster.in_office
    if not noticed:
        cluster.benches[1].hold(BROKER_IDS)
    leave(cluster, 2)
    come_back(cluster, 2)
    assert [2] == holders(cluster)
    cluster.release()
    if not noticed:
        assert [2] == holders(cluster)
        cluster.benches[1].release()
        cluster.settle()
    assert [] == holders(cluster)


def test_replica_of_the_next_topic_stays_where_the_deletion_of_the_last_was_missed() -> None:
    cluster = cluster_of()
    leave(cluster, 2)
    cluster.delete("t")
    cluster.create(replicas=(1,))
    newer = cluster.replica(1).topic_id
    come_back(cluster, 2)
    assert [1] == holders(cluster)
    cluster.delete("t")
    cluster.create(replicas=(1, 2))
    assert [1, 2] == holders(cluster)
    assert newer < cluster.replica(1).topic_id == cluster.replica(2).topic_id


@pytest.mark.parametrize(("rules", "missed"), [("kip380", 1), (NAMELESS, NO_TOPIC_ID)])
def test_replica_that_is_assigned_again_is_not_stopped(rules: str | Rules, missed: int) -> None:
    """With ids the broker deletes what is of an older topic; without, nothing could tell the two apart."""
    cluster = cluster_of(rules)
    leave(cluster, 2)
    cluster.benches[3].broker.state.controller.unstopped[2] = {TP: StopReplica(tp=TP, topic_id=missed)}
    come_back(cluster, 2)
    assert [] == stops(cluster, 2)
    assert [1, 2] == holders(cluster)


@pytest.mark.parametrize("rules", ["kip279-2.0.1", "kip380"])
def test_replica_that_was_moved_away_and_back_while_its_broker_was_down_stays_with_its_records(rules: str) -> None:
    """A release without ids obeys any StopReplica, also once its leader has counted what it fetched."""
    cluster = cluster_of()
    assert [0, 0] == [result.error for _ in range(2) for result in cluster.produce(1)]
    cluster.crash(2)
    cluster.pass_ms(500)
    for replicas in ((1,), (1, 2)):
        cluster.zk.put(ELECTIONS, encode_wishes(Wishes(moves={TP: replicas})))
        cluster.pass_ms(2_000)
        assert replicas == decode_topic(cluster.zk.nodes[topic_path(TP.topic)].data).replicas[0]
    cluster.rules = rules
    cluster.start(2)
    assert [] == stops(cluster, 2)
    cluster.pass_ms(2_000)
    assert {1, 2} == {*cluster.state().isr}
    assert not cluster.benches[2].observed("stopped")
    assert 2 == cluster.replica(2).log.end_offset


def test_of_too_many_missed_deletions_none_is_remembered_and_init_says_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_queue, "UNSTOPPED_MAX", 2)
    cluster = cluster_of()
    for topic in ("u", "v"):
        cluster.create(topic, replicas=(2,))
    leave(cluster, 2)
    for topic in ("t", "u", "v"):
        cluster.delete(topic)
    controller = cluster.benches[3].broker.state.controller
    assert ({}, {2}) == (controller.unstopped[2], controller.owed_init)
    come_back(cluster, 2)
    assert [] == holders(cluster)
    assert not controller.owed_init and [] == cluster.benches[3].observed("command-dropped")


def test_without_ids_the_oldest_of_too_many_missed_deletions_are_dropped_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_queue, "UNSTOPPED_MAX", 2)
    cluster = cluster_of(NAMELESS)
    for topic in ("u", "v"):
        cluster.create(topic, replicas=(2,))
    leave(cluster, 2)
    for topic in ("t", "u", "v"):
        cluster.delete(topic)
    assert ["u", "v"] == [tp.topic for tp in cluster.benches[3].broker.state.controller.unstopped[2]]
    assert [{"broker": 2, "queued": 2}] == cluster.benches[3].observed("command-dropped")
    come_back(cluster, 2)
    assert [2] == holders(cluster)
    assert {} == cluster.benches[3].broker.state.controller.unstopped
