"""
The controller's part in a topic's identity: what it writes to ZooKeeper, whom it tells, and in which order.

Source:  Kafka Replication Design V3, B and discussion 5; KIP-516.
"""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Answered
from targets.broker.core.messages import ErrorCode, LeaderAndIsrRequest, LeaderAndIsrResponse, StopReplicaRequest
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    ZkCheck,
    ZkMulti,
    ZkSet,
    broker_path,
    encode_registration,
    leader_and_isr_path,
    topic_id_path,
    topic_path,
)
from tests.broker.core.asks import ISR_STATE
from tests.broker.core.bench import TP, Bench, MemoryLog, registration
from tests.broker.core.cluster import Cluster
from tests.broker.core.memory import MemoryZk

NAMED = "kip380"
DONE = LeaderAndIsrResponse(error=ErrorCode.NONE, errors=())


def controller(rules: str = NAMED) -> Bench:
    """Return broker 1 as controller of 2 and 3; it has announced topic t on 2 and 3."""
    bench = Bench(rules)
    bench.start(session=5)
    for broker in (2, 3):
        bench.zk.put(broker_path(broker), encode_registration(registration(broker)), owner=100 + broker)
    bench.fire(BROKER_IDS)
    create(bench.zk, 2, 3)
    bench.fire(BROKER_TOPICS)
    return bench


def create(zk: MemoryZk, *replicas: int) -> int:
    zk.put(topic_path("t"), encode_assignment({0: replicas}))
    return zk.nodes[topic_path("t")].czxid


def delete(zk: MemoryZk) -> None:
    for path in sorted((path for path in zk.nodes if path.startswith(topic_path("t"))), reverse=True):
        zk.remove(path)


def commands(bench: Bench) -> list[tuple[int, str, int]]:
    """Return receiver, kind and topic id of every command that 2 and 3 are sent, once each answers."""
    told = list(bench.sent())
    while waiting := [c.tag for b, c in bench.broker.state.controller.channels.items() if b != 1 and c.tag]:
        for tag in waiting:
            told += bench.sent(bench.step(Answered(tag=tag, response=DONE)))
    return [
        (send.to, type(send.request).__name__, part.topic_id)
        for send in sorted(told, key=lambda send: send.to)
        if send.to != 1 and isinstance(send.request, LeaderAndIsrRequest | StopReplicaRequest)
        for part in send.request.partitions
    ]


def test_controller_writes_the_topics_id_into_its_state_and_beside_it() -> None:
    bench = controller()
    topic_id = bench.zk.nodes[topic_path("t")].czxid
    assert topic_id == bench.zk.state().topic_id and topic_id_path(TP, topic_id) in bench.zk.nodes
    assert [(2, "LeaderAndIsrRequest", topic_id), (3, "LeaderAndIsrRequest", topic_id)] == commands(bench)


def test_controller_that_finds_a_topic_created_again_stops_the_old_replicas_before_it_tells_the_new_ones() -> None:
    bench = controller()
    old = bench.zk.state().topic_id
    delete(bench.zk)
    new = create(bench.zk, 3, 2)
    bench.fire(BROKER_TOPICS)
    # What waited about the old topic is not told any more.
    kinds = (("StopReplicaRequest", old), ("LeaderAndIsrRequest", new))
    assert [(broker, *kind) for broker in (2, 3) for kind in kinds] == commands(bench)
    assert (3, 0, new) == (bench.zk.state().leader, bench.zk.state().leader_epoch, bench.zk.state().topic_id)


def test_later_write_of_the_controller_checks_the_id() -> None:
    bench = controller()
    topic_id = bench.zk.state().topic_id
    before = len(bench.effects)
    bench.zk.close_session(102)
    bench.fire(BROKER_IDS)
    multis = [op for e in bench.effects[before:] for op in getattr(e, "ops", ()) if isinstance(op, ZkMulti)]
    (ops,) = [multi.ops for multi in multis if any(isinstance(op, ZkSet) for op in multi.ops)]
    assert ZkCheck(path=topic_id_path(TP, topic_id), version=0) in ops
    assert (3, topic_id) == (bench.zk.state().leader, bench.zk.state().topic_id)


def test_without_the_rule_nothing_in_zookeeper_and_no_command_has_an_id() -> None:
    bench = controller("kip320")
    assert 0 == bench.zk.state().topic_id and b"topic_id" not in bench.zk.nodes[ISR_STATE].data
    assert [leader_and_isr_path(TP)] == [
        path for path in bench.zk.nodes if path.startswith(f"{topic_path('t')}/0/")
    ]
    assert {0} == {topic_id for _, _, topic_id in commands(bench)}


def test_controller_that_takes_office_names_the_id_of_every_topic() -> None:
    bench = controller()
    topic_id = bench.zk.state().topic_id
    other = Bench(NAMED, broker_id=2, zk=bench.zk)
    bench.zk.remove(broker_path(2))
    bench.zk.remove("/controller")
    other.start(session=6)
    told = [send.request for send in other.sent() if isinstance(send.request, LeaderAndIsrRequest)]
    assert {topic_id} == {part.topic_id for request in told for part in request.partitions}


# --- together ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("missed", [1, 2])
def test_broker_that_missed_a_deletion_serves_none_of_it(missed: int) -> None:
    """Its old log is replaced, whether it is to lead or to follow."""
    cluster = Cluster(NAMED, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.produce(1, 3, crc=666)
    cluster.drop = lambda _asker, send: send.to == missed and isinstance(send.request, StopReplicaRequest)
    cluster.delete("t", via=3)
    lost = cluster.replica(missed).log
    old = cluster.stop(3)
    cluster.create(replicas=(1, 2), via=1)
    cluster.expire(old)
    cluster.pass_ms(1_000)
    cluster.produce(1, 1, crc=1, acks=1)
    cluster.pass_ms(1_000)
    logs = [cluster.replica(broker).log for broker in (1, 2)]
    assert isinstance(lost, MemoryLog) and lost.deleted
    assert [[1], [1]] == [[item.crc for item in log.batches] for log in logs if isinstance(log, MemoryLog)]


def test_deletion_removes_everything_below_the_topic() -> None:
    cluster = Cluster(NAMED, brokers=(3, 1, 2))
    cluster.create(replicas=(1, 2))
    cluster.delete("t")
    assert [] == [path for path in cluster.zk.nodes if path.startswith(topic_path("t"))]
