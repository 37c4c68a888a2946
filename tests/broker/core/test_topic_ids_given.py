"""
Topics without an id get theirs once a controller knows topics by ids: what is written, who dies meanwhile.

Source:  KIP-516, upgrade; Kafka, KafkaController.processTopicIds: a controller writes the ids that are missing.
"""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.messages import TopicPartition
from targets.broker.core.state import Together
from targets.broker.core.zookeeper import topic_id_path, topic_path
from tests.broker.core.bench import TP, Bench
from tests.broker.core.cluster import Cluster
from tests.broker.core.test_partitions import add, more
from tests.broker.core.test_reassignment import Mortal

OLDER, NEWER = "kip320", "kip380"
FOUR = [TopicPartition(TP.topic, number) for number in range(4)]
# One write for each partition, one after another, so that a controller can die between any two.
SINGLY = Together(writes_together_max=1, writes_max=1)


def cluster_of(rules: str, *, bench: type[Bench] = Bench) -> Cluster:
    """Return four brokers; 3 is controller, 1 and 2 have four partitions, and two records in the first."""
    cluster = Cluster(rules, (3, 4, 1, 2), bench=bench, together=SINGLY, replica_lag_ms_max=400)
    cluster.create(replicas=(1, 2))
    add(cluster, more(4, (2, 1), (1, 2), (2, 1)), to=3)
    assert [0] == [result.error for result in cluster.produce(1, 2)]
    return cluster


def install(cluster: Cluster, rules: str, *brokers: int) -> None:
    """Restart brokers one by one with other rules; each is whole before the next one goes."""
    cluster.rules = rules
    for broker in brokers:
        cluster.crash(broker)
        cluster.pass_ms(200)
        cluster.start(broker)
        cluster.pass_ms(1_500)
        assert [{1, 2}] * 4 == [{*cluster.state(tp).isr} for tp in FOUR]


def topic_id(cluster: Cluster) -> int:
    return cluster.zk.nodes[topic_path(TP.topic)].czxid


def all_have_ids(cluster: Cluster) -> None:
    """Assert that each partition goes by its topic's id in ZooKeeper, with its leader, and on both disks."""
    own = topic_id(cluster)
    for tp in FOUR:
        state = cluster.state(tp)
        assert own == state.topic_id
        assert cluster.zk.nodes[topic_id_path(tp, own)].version == 0
        replicas = [cluster.replica(broker, tp) for broker in (1, 2)]
        assert [own] * 4 == [of for each in replicas for of in (each.topic_id, each.log.topic_id)]
    assert [2, 2] == [cluster.replica(broker).log.end_offset for broker in (1, 2)]
    below = [path for path in cluster.zk.nodes if "/id-" in path]
    assert sorted(topic_id_path(tp, own) for tp in FOUR) == sorted(below)


def test_partitions_of_an_older_release_get_their_topics_id_in_a_rolling_upgrade() -> None:
    cluster = cluster_of(OLDER)
    assert [0] * 4 == [cluster.state(tp).topic_id for tp in FOUR]
    install(cluster, NEWER, 1, 2, 4)
    assert 3 == cluster.controller
    assert [0] * 4 == [cluster.state(tp).topic_id for tp in FOUR], "the controller knows none"
    install(cluster, NEWER, 3)
    all_have_ids(cluster)


@pytest.mark.parametrize("order", [(3, 4, 1, 2), (1, 3, 2, 4), (2, 1, 4, 3)], ids=str)
def test_cluster_goes_down_and_up_again_and_every_partition_has_its_id(order: tuple[int, ...]) -> None:
    """Leaders that know no ids leave them out of the states; the nodes beside these stay."""
    cluster = cluster_of(NEWER)
    all_have_ids(cluster)
    install(cluster, OLDER, *order)
    assert 0 in [cluster.state(tp).topic_id for tp in FOUR]
    assert [0] * 8 == [cluster.replica(broker, tp).log.topic_id for broker in (1, 2) for tp in FOUR]
    install(cluster, NEWER, *order)
    all_have_ids(cluster)


def test_next_controller_gives_the_ids_that_are_missing_whenever_the_last_one_dies() -> None:
    given: set[int] = set()
    for things in range(1, 100):
        cluster = cluster_of(OLDER, bench=Mortal)
        install(cluster, NEWER, 4, 1, 2)
        controller = cluster.benches[4]
        assert isinstance(controller, Mortal)
        controller.left = things
        cluster.crash(3)
        if controller.left > 0:
            break
        given.add(sum(cluster.state(tp).topic_id > 0 for tp in FOUR))
        cluster.crash(4)
        cluster.pass_ms(1_500)
        all_have_ids(cluster)
    assert {0, 1, 2, 3, 4} == given, "it dies before the first, after each, and before it has told of the last"


@pytest.mark.parametrize("happened", [True, False])
def test_write_of_an_id_whose_answer_is_lost_is_read_again(happened: bool) -> None:
    cluster = cluster_of(OLDER)
    install(cluster, NEWER, 4, 1, 2)
    path = topic_id_path(FOUR[2], topic_id(cluster))
    cluster.benches[4].lose(path, happened=happened, writes=True)
    cluster.crash(3)
    assert 4 == cluster.controller
    cluster.pass_ms(2_000)
    all_have_ids(cluster)


def test_id_that_a_log_had_before_deletes_no_record_of_the_topic_that_has_its_name_now() -> None:
    """2 misses that the topic is deleted while no broker knows ids, and follows the next one with its old log."""
    cluster = cluster_of(NEWER)
    install(cluster, OLDER, 3, 4, 1, 2)
    cluster.crash(2)
    cluster.pass_ms(100)
    cluster.delete(TP.topic, via=1)
    cluster.pass_ms(100)
    cluster.zk.put(topic_path(TP.topic), encode_assignment({0: (1, 2)}))  # a client's would need 2 to be alive
    cluster.settle()
    cluster.start(2)
    cluster.pass_ms(1_500)
    (produced,) = cluster.produce(1, 3)
    assert (0, {1, 2}) == (produced.error, {*cluster.state().isr})
    log = cluster.replica(2).log
    cluster.rules = NEWER
    for broker in (2, 3, 4, 1):
        cluster.crash(broker)
        cluster.pass_ms(200)
        cluster.start(broker)
        cluster.pass_ms(1_500)
    assert topic_id(cluster) == cluster.state().topic_id
    assert log is cluster.replica(2).log and topic_id(cluster) == log.topic_id
