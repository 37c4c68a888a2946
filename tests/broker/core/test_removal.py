"""
Partitions that an operator removes: which may go, what is written at once, who dies meanwhile, what comes late.

Source:  Kafka Replication Design V3, Paths 6 (PartitionRemove) and on_partitions_remove, 1 to 4.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.assignments import (
    Assignment,
    Move,
    decode_topic,
    encode_topic,
)
from targets.broker.core.events import ZkAsk
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    LeaderAndIsrRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.removal import added, removable, without
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Together
from targets.broker.core.wishes import Wishes, decode_wishes, encode_wishes
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    ELECTIONS,
    leader_and_isr_path,
    partition_path,
    topic_path,
)
from targets.simulator.zookeeper.ops import Delete
from tests.broker.core.bench import TP, Bench, batch
from tests.broker.core.cluster import Cluster
from tests.broker.core.test_missed_deletions import come_back, leave
from tests.broker.core.test_partitions import TOPIC, add, more
from tests.broker.core.test_reassignment import Mortal

T1, T2, T3 = (TopicPartition(TOPIC, number) for number in (1, 2, 3))
PLACED = {0: (1, 2), 1: (2, 1), 2: (1, 2), 3: (2, 1)}


def cluster_of(protocol: str = "kip380", *, bench: type[Bench] = Bench, **settings: Together) -> Cluster:
    """Return four brokers, of which 4 is controller; 1 and 2 have four partitions, each with a record."""
    cluster = Cluster(protocol, (4, 1, 2, 3), bench=bench, **settings)
    cluster.create(replicas=PLACED[0])
    add(cluster, more(4, PLACED[1], PLACED[2], PLACED[3]), to=4)
    for partition, (leader, _) in PLACED.items():
        produce(cluster, leader, TopicPartition(TOPIC, partition))
    cluster.pass_ms(1_000)
    return cluster


def produce(cluster: Cluster, broker: int, tp: TopicPartition) -> list[int]:
    """Produce a record with acks=all; return where it is, nothing if it was refused or waits."""
    asked = ProduceRequest(acks=-1, timeout_ms=30_000, partitions=(ProducePartition(tp=tp, batches=(batch(),)),))
    found = [answer for answer in cluster.ask(broker, asked) if isinstance(answer, ProduceResponse)]
    return [result.base_offset for answer in found for result in answer.results if not result.error]


def remove(cluster: Cluster, *partitions: TopicPartition) -> None:
    """Write what an operator wants where the controller looks, beside what stands there."""
    there = cluster.zk.nodes.get(ELECTIONS)
    cluster.zk.put(ELECTIONS, Wishes(removals=partitions).beside(None if there is None else there.data))
    cluster.settle()


def node(cluster: Cluster) -> Assignment:
    return decode_topic(cluster.zk.nodes[topic_path(TOPIC)].data)


def hosted(cluster: Cluster) -> dict[int, list[int]]:
    """Return the partitions that each broker has, where it has any."""
    found = {id_: sorted(tp.partition for tp in b.broker.state.replicas) for id_, b in cluster.benches.items()}
    return {id_: partitions for id_, partitions in found.items() if partitions}


def are_left(cluster: Cluster, count: int) -> None:
    """Assert that so many partitions are left, in ZooKeeper and at each broker, and that each takes records."""
    assert {number: PLACED[number] for number in range(count)} == node(cluster).replicas
    assert {1: [*range(count)], 2: [*range(count)]} == hosted(cluster)
    assert cluster.mark(TOPIC) == node(cluster).made
    names = [path.split("/")[4] for path in cluster.zk.nodes if path.startswith(f"{topic_path(TOPIC)}/")]
    assert {str(number) for number in range(count)} == {name for name in names if name.isdecimal()}
    assert ELECTIONS not in cluster.zk.nodes
    for number in range(count):
        tp = TopicPartition(TOPIC, number)
        assert produce(cluster, cluster.state(tp).leader, tp)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_go_with_their_replicas_and_the_others_stay(protocol: str) -> None:
    """on_partitions_remove, 1 to 4."""
    cluster = cluster_of(protocol)
    logs = [cluster.replica(broker, tp).log for broker in (1, 2) for tp in (T2, T3)]
    remove(cluster, T2, T3)
    cluster.pass_ms(100)
    are_left(cluster, 2)
    assert [True] * 4 == [log.deleted for log in logs if hasattr(log, "deleted")]
    assert 4 == node(cluster).once


@pytest.mark.parametrize(
    ("wished", "expected"),
    [
        ((3,), (3,)),
        ((2, 3), (3, 2)),
        ((2,), ()),
        ((0, 1), ()),
        ((0, 1, 2, 3), (3, 2, 1)),
        ((1, 3), (3,)),
        ((9,), ()),
    ],
)
def test_only_the_highest_go_and_never_all(wished: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Clients count partitions from 0, and find a key's by their count."""
    has = Assignment(replicas=PLACED)
    assert expected == removable(has, wished, 9)
    assert expected[:1] == removable(has, wished, 1)
    assert () == removable(Assignment(replicas={}), wished, 9)


@pytest.mark.parametrize("wished", [(T2,), (TopicPartition("u", 0),), (TP,), (TP, T1)])
def test_what_cannot_go_is_taken_out_of_the_node_and_changes_nothing(wished: tuple[TopicPartition, ...]) -> None:
    cluster = cluster_of()
    version = cluster.zk.nodes[topic_path(TOPIC)].version
    remove(cluster, *wished)
    are_left(cluster, 4)
    assert version == cluster.zk.nodes[topic_path(TOPIC)].version


def test_many_go_in_several_writes_and_of_several_topics() -> None:
    cluster = cluster_of(together=Together(writes_together_max=1))
    cluster.create("u", replicas=(3,))
    add(cluster, more(2, (3,), topic="u"), to=4)
    asks = len(cluster.benches[4].effects)
    remove(cluster, T1, T2, T3, TopicPartition("u", 1))
    written = [e for e in cluster.benches[4].effects[asks:] if isinstance(e, ZkAsk) and removes(e)]
    assert 4 == len(written)
    assert {1: [0], 2: [0], 3: [0]} == hosted(cluster)


def removes(ask: ZkAsk) -> bool:
    return any("ZkDelete" in repr(op) and "leaderAndISR" in repr(op) for op in ask.ops)


def test_elections_and_moves_that_stand_beside_it_are_taken_too() -> None:
    cluster = cluster_of()
    data = Wishes(removals=(T3,)).beside(encode_wishes(Wishes(elections={TP: 2}, moves={T1: (2, 3)})))
    assert Wishes(elections={TP: 2}, moves={T1: (2, 3)}, removals=(T3,)) == decode_wishes(data)
    cluster.zk.put(ELECTIONS, data)
    cluster.settle()
    cluster.pass_ms(3_000)
    assert (2, (2, 3), {0, 1, 2}) == (
        cluster.state().leader,
        node(cluster).replicas[1],
        node(cluster).replicas.keys(),
    )


def test_partition_that_is_being_moved_goes_wherever_it_is() -> None:
    cluster = cluster_of()
    cluster.drop = lambda _, send: send.to == 3
    wanted = WantedReplicas(tp=T3, replicas=(3, 1))
    cluster.ask(4, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
    assert {3} == node(cluster).moves.keys()
    cluster.drop = lambda _, __: False
    remove(cluster, T3)
    cluster.pass_ms(3_000)
    assert {} == node(cluster).moves
    are_left(cluster, 3)


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip320", "kip380"])
def test_next_controller_ends_it_whenever_the_last_one_dies(protocol: str) -> None:
    """
    V3 stops the replicas before it writes: a death between the two would leave what nobody has.

    Source:  Kafka Replication Design V3, D 9.
    """
    removed = deaths = 0
    for things in range(1, 100):
        cluster = cluster_of(protocol, bench=Mortal)
        controller = cluster.benches[4]
        assert isinstance(controller, Mortal)
        controller.left = things
        remove(cluster, T2, T3)
        if controller.left > 0:
            are_left(cluster, 2)
            break
        deaths += 1
        removed += T3.partition not in node(cluster).replicas
        cluster.crash(4)
        cluster.pass_ms(2_000)
        are_left(cluster, 2)
    assert removed >= 4 and deaths > removed, "it dies before the write, and everywhere after"


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("path", [partition_path(T3), leader_and_isr_path(T3), topic_path(TOPIC), ELECTIONS])
def test_write_whose_answer_is_lost_is_read_again(path: str, happened: bool) -> None:
    cluster = cluster_of()
    cluster.benches[4].lose(path, happened=happened, writes=path != partition_path(T3))
    remove(cluster, T3)
    cluster.pass_ms(2_000)
    are_left(cluster, 3)


def test_topic_that_is_changed_meanwhile_is_read_again() -> None:
    cluster = cluster_of()
    controller = cluster.benches[4]
    controller.hold(leader_and_isr_path(T3), writes=True)
    remove(cluster, T3)
    data = cluster.zk.nodes[topic_path(TOPIC)].data
    cluster.zk.put(topic_path(TOPIC), data)
    controller.release()
    assert T3.partition in node(cluster).replicas
    cluster.pass_ms(2_000)
    are_left(cluster, 3)


@pytest.mark.parametrize("protocol", ["hw", "kip380"])
def test_broker_that_was_away_deletes_its_replica_when_it_is_back(protocol: str) -> None:
    cluster = cluster_of(protocol)
    leave(cluster, 2)
    remove(cluster, T3)
    assert {1: [0, 1, 2], 2: [0, 1, 2, 3]} == hosted(cluster)
    come_back(cluster, 2)
    cluster.pass_ms(2_000)
    are_left(cluster, 3)


def test_broker_that_was_down_deletes_its_replica_when_it_starts() -> None:
    cluster = cluster_of()
    cluster.crash(2)
    remove(cluster, T3)
    cluster.start(2)
    cluster.pass_ms(2_000)
    are_left(cluster, 3)


def test_broker_that_missed_a_removal_deletes_the_next_replica_too_if_that_is_removed_as_it_returns() -> None:
    """It reads the next partition at its start; one reading finds it back and that partition gone; seed 1625."""
    cluster = cluster_of()
    session = cluster.stop(2)
    again(cluster)
    cluster.expire(session)
    cluster.benches[4].hold(BROKER_IDS)
    cluster.start(2)
    assert cluster.state(T3).topic_id == cluster.replica(2, T3).topic_id
    remove(cluster, T3)
    cluster.benches[4].release()
    cluster.settle()
    cluster.pass_ms(2_000)
    are_left(cluster, 3)


# --- one that is added again --------------------------------------------------------------------------------
def again(cluster: Cluster) -> int:
    """Remove partition 3 and add it again; return the id that its predecessor had."""
    before = cluster.state(T3).topic_id
    remove(cluster, T3)
    add(cluster, more(4, PLACED[3]), to=4)
    cluster.pass_ms(1_000)
    assert cluster.state(T3).topic_id > before
    return before


def test_partition_that_is_added_again_is_empty_and_has_an_id_of_its_own() -> None:
    """V3, discussion 5: "do we need partition version id"."""
    cluster = cluster_of()
    again(cluster)
    assert [0] == produce(cluster, 2, T3)
    first = node(cluster).ids[3]
    again(cluster)
    assert node(cluster).ids[3] > first
    assert {1: [0, 1, 2, 3], 2: [0, 1, 2, 3]} == hosted(cluster)
    add(cluster, more(5, (1, 2)), to=4)
    assert {3} == node(cluster).ids.keys(), "the fifth was never there before"


def test_stop_and_commands_that_come_late_leave_the_next_partition_alone() -> None:
    cluster = cluster_of()
    controller = cluster.benches[4]
    old = [s for s in controller.sent() if isinstance(s.request, LeaderAndIsrRequest) and s.to == 2]
    again(cluster)
    assert [0] == produce(cluster, 2, T3)
    stops = [s for s in controller.sent() if isinstance(s.request, StopReplicaRequest) and s.to == 2]
    for send in (*stops, *(send for send in old if not send.request.is_init)):
        cluster.ask(2, send.request)
    cluster.pass_ms(1_000)
    assert [1] == produce(cluster, 2, T3)
    assert 2 == cluster.replica(1, T3).log.end_offset


def test_replica_that_missed_the_removal_is_deleted_before_it_has_the_next_one() -> None:
    """Its log would bring back what was removed."""
    cluster = cluster_of()
    session = cluster.stop(2)
    remove(cluster, T3)
    add(cluster, more(4, PLACED[3]), to=4)
    cluster.expire(session)
    cluster.pass_ms(1_000)
    assert [0] == produce(cluster, 1, T3) and [1] == produce(cluster, 1, T3)
    bench = cluster.start(2)
    cluster.pass_ms(2_000)
    assert [T3] == [log.tp for log in bench.made]
    assert (2, {1, 2}) == (cluster.replica(2, T3).log.end_offset, set(cluster.state(T3).isr))


def test_next_controller_knows_the_ids_and_moves_keep_them() -> None:
    cluster = cluster_of()
    again(cluster)
    own = node(cluster).ids
    cluster.crash(4)
    cluster.pass_ms(1_000)
    wanted = WantedReplicas(tp=T3, replicas=(3, 1))
    controller = cluster.controller
    cluster.ask(controller, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
    cluster.pass_ms(4_000)
    assert ((3, 1), own, 4) == (node(cluster).replicas[3], node(cluster).ids, node(cluster).once)
    assert own[3] == cluster.state(T3).topic_id == cluster.replica(3, T3).topic_id


def test_what_a_topic_had_is_kept_in_its_node() -> None:
    has = Assignment(replicas=PLACED, moves={3: Move(origin=(2, 1), target=(1,))}, ids={2: 7, 3: 8})
    after = without(has, (3,))
    assert ({0, 1, 2}, {}, {2: 7}, 4) == (after.replicas.keys(), after.moves, after.ids, after.once)
    assert after == decode_topic(encode_topic(after))
    assert 4 == without(after, (2,)).once
    assert {2: 7, 3: 9} == added(after, (3, 4), 9)
    assert replace(after, once=0, ids={}) == decode_topic(encode_topic(replace(after, once=0, ids={})))


def test_topic_of_which_a_partition_goes_meanwhile_is_deleted_all_the_same() -> None:
    """The deletion has seen the partition, and reads what is below it when it is gone; seed 203161."""
    cluster = cluster_of()
    controller = cluster.benches[4]
    controller.hold(partition_path(T3), writes=False)
    cluster.delete(TOPIC)
    gone = sorted((path for path in cluster.zk.nodes if path.startswith(partition_path(T3))), reverse=True)
    cluster.zk.write([Delete(path=path) for path in gone], 0)
    controller.release()
    cluster.pass_ms(1_000)
    assert [] == [path for path in cluster.zk.nodes if path.startswith(topic_path(TOPIC))]
