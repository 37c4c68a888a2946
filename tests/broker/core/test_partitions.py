"""Partitions that clients add to a topic: who may, what is refused, and that the controller begins them."""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import decode_assignment
from targets.broker.core.messages import (
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    MorePartitions,
    Response,
    TopicErrors,
    TopicPartition,
)
from targets.broker.core.zookeeper import CONTROLLER, leader_and_isr_path, topic_path
from tests.broker.core.bench import answers
from tests.broker.core.cluster import Cluster, cluster_of
from tests.broker.core.test_reassignment import Mortal

OK = ErrorCode.NONE
TOPIC = "t"


def add(
    cluster: Cluster, *topics: MorePartitions, to: int = 3, validate_only: bool = False
) -> list[tuple[str, ErrorCode]]:
    """Ask a broker for more partitions; return the error of each topic."""
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1_000, validate_only=validate_only)
    (answer,) = cluster.ask(to, request)
    assert isinstance(answer, TopicErrors)
    return [(topic, error) for topic, error, _ in answer.errors]


def more(count: int, *assignments: tuple[int, ...], topic: str = TOPIC) -> MorePartitions:
    return MorePartitions(topic=topic, count=count, assignments=assignments or None)


def replicas_of(cluster: Cluster) -> dict[int, tuple[int, ...]]:
    return decode_assignment(cluster.zk.nodes[topic_path(TOPIC)].data)


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip320", "kip380"])
def test_partitions_are_added_led_and_followed(protocol: str) -> None:
    """Source: Kafka Replication Design V3, on_partitions_add: init_leaders of what is added."""
    cluster = cluster_of(protocol)
    assert [(TOPIC, OK)] == add(cluster, more(3, (2, 3), (3, 1)))
    assert {0: (1, 2), 1: (2, 3), 2: (3, 1)} == replicas_of(cluster)
    for partition, leader in ((1, 2), (2, 3)):
        tp = TopicPartition(TOPIC, partition)
        assert leader_and_isr_path(tp) in cluster.zk.nodes
        assert "leader" == cluster.replica(leader, tp).role.value


@pytest.mark.parametrize("protocol", ["hw", "kip380"])
def test_next_controller_begins_what_was_added_whenever_the_last_one_dies(protocol: str) -> None:
    """
    Between the write of the topic and that of the states of its new partitions nobody leads them.

    Source:  Kafka Replication Design V3, D 8.
    """
    added = deaths = 0
    for things in range(1, 100):
        cluster = Cluster(protocol, brokers=(3, 1, 2), bench=Mortal)
        cluster.create(replicas=(1, 2))
        controller = cluster.benches[3]
        assert isinstance(controller, Mortal)
        controller.left = things
        request = CreatePartitionsRequest(topics=(more(3, (2, 1), (1, 2)),), timeout_ms=1_000)
        cluster.ask(3, request)
        if controller.left > 0:
            break
        deaths += 1
        cluster.crash(3)
        cluster.pass_ms(2_000)
        there = replicas_of(cluster)
        added += len(there) > 1
        led = {tp: cluster.state(TopicPartition(TOPIC, tp)).leader for tp in there}
        assert led == ({0: 1} if len(there) == 1 else {0: 1, 1: 2, 2: 1})
        assert all(
            cluster.replica(broker, TopicPartition(TOPIC, tp)).role.value == "leader" for tp, broker in led.items()
        )
    assert added >= 3 and deaths > added, "it dies before the request is written, and everywhere after"


def test_broker_places_them_beside_those_that_are_there() -> None:
    cluster = cluster_of("kip380")
    assert [(TOPIC, OK)] == add(cluster, more(4))
    found = replicas_of(cluster)
    assert [0, 1, 2, 3] == sorted(found)
    assert {2} == {len(set(each)) for each in found.values()}
    assert {1, 2, 3} == {found[partition][0] for partition in (1, 2, 3)}


def test_broker_that_is_not_the_controller_refuses() -> None:
    """Source: Kafka: NOT_CONTROLLER, upon which clients ask for metadata again."""
    cluster = cluster_of("kip380")
    assert [(TOPIC, ErrorCode.NOT_CONTROLLER)] == add(cluster, more(2), to=1)
    assert {0: (1, 2)} == replicas_of(cluster)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (more(1), ErrorCode.INVALID_PARTITIONS),
        (more(0), ErrorCode.INVALID_PARTITIONS),
        (more(10**6), ErrorCode.INVALID_PARTITIONS),
        (more(3, (1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(2, (1, 2, 3)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(2, (1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(2, (1, 9)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (more(2, topic="unknown"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (more(2, topic="a/b"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(asked: MorePartitions, error: ErrorCode) -> None:
    cluster = cluster_of("kip380")
    assert [(asked.topic, error)] == add(cluster, asked)
    assert {0: (1, 2)} == replicas_of(cluster)


def test_each_topic_has_its_own_answer_and_a_check_alone_writes_nothing() -> None:
    cluster = cluster_of("kip380")
    asked = (more(2, topic="unknown"), more(2))
    expected = {("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (TOPIC, OK)}
    assert expected == set(add(cluster, *asked, validate_only=True))
    assert {0: (1, 2)} == replicas_of(cluster)
    assert expected == set(add(cluster, *asked))
    assert {0, 1} == replicas_of(cluster).keys()


@pytest.mark.parametrize(("count", "error"), [(2, ErrorCode.INVALID_PARTITIONS), (3, OK)])
def test_second_of_two_requests_at_once_adds_to_what_the_first_has_added(count: int, error: ErrorCode) -> None:
    """Kafka has no error for what another request has written meanwhile."""
    cluster = cluster_of("kip380")
    controller = cluster.benches[3]
    controller.hold(topic_path(TOPIC), writes=True)
    for each in (2, count):
        assert [] == cluster.ask(3, CreatePartitionsRequest(topics=(more(each),), timeout_ms=1_000))
    found = [each.errors[0][1] for each in answers(controller.release()) if isinstance(each, TopicErrors)]
    cluster.settle()
    assert [OK, error] == found
    assert range(count) == range(len(replicas_of(cluster)))
    assert all(cluster.state(TopicPartition(TOPIC, partition)).leader > 0 for partition in range(count))


def test_topic_that_is_written_again_and_again_is_read_once_more_and_no_more() -> None:
    cluster = cluster_of("kip380")
    controller, whole = cluster.benches[3], cluster.zk.nodes[topic_path(TOPIC)].data
    controller.hold(topic_path(TOPIC), writes=True)
    topics = (more(2, topic="unknown"), more(2))
    assert [] == cluster.ask(3, CreatePartitionsRequest(topics=topics, timeout_ms=1_000))
    found: list[Response] = []
    for _ in range(2):
        assert [] == found and controller.held
        cluster.zk.put(topic_path(TOPIC), whole)
        found += answers(controller.release(then_hold=True))
    (answer,) = found
    assert isinstance(answer, TopicErrors) and {0: (1, 2)} == replicas_of(cluster)
    refused = [("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (TOPIC, ErrorCode.REQUEST_TIMED_OUT)]
    assert refused == [(topic, error) for topic, error, _ in answer.errors]


def test_topic_with_added_partitions_is_deleted_whole() -> None:
    """Source: Kafka Replication Design V3, B, on_topic_change 2."""
    cluster = cluster_of("kip380")
    add(cluster, more(2, (2, 3)))
    cluster.ask(3, DeleteTopicsRequest(topics=(TOPIC,), timeout_ms=1_000))
    assert topic_path(TOPIC) not in cluster.zk.nodes
    assert not any(bench.broker.state.replicas for bench in cluster.benches.values())


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("knows", [False, True])
def test_deposed_controller_adds_no_partitions_and_says_so(*, writes: bool, knows: bool) -> None:
    """
    The next controller's first reading may have been before: nobody would begin the partitions.

    Source:  Kafka, KafkaZkClient: what a controller writes checks the epoch of /controller_epoch.
    """
    cluster = cluster_of("kip380")
    controller, before = cluster.benches[3], replicas_of(cluster)
    controller.hold(topic_path(TOPIC), writes=writes)
    request = CreatePartitionsRequest(topics=(more(3),), timeout_ms=1_000, validate_only=False)
    assert [] == cluster.ask(3, request)
    cluster.zk.nodes.pop(CONTROLLER)
    cluster.benches[1].fire(CONTROLLER)
    assert [3, 1] == cluster.in_office
    if knows:
        controller.fire(CONTROLLER)
    (answer,) = [each for each in answers(controller.release()) if isinstance(each, TopicErrors)]
    (refused,) = answer.errors
    assert (TOPIC, ErrorCode.NOT_CONTROLLER) == refused[:2], "its refused write has it look who is in office"
    assert before == replicas_of(cluster)
