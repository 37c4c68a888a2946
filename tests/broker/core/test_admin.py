"""Client requests to the cluster: metadata from ZooKeeper, topic creation and deletion (V3, Overview and B)."""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import decode_assignment
from targets.broker.core.messages import (
    BrokerMetadata,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    Request,
    TopicErrors,
    TopicPartition,
)
from targets.broker.core.zookeeper import BROKER_IDS, BROKER_TOPICS, leader_and_isr_path, topic_path
from tests.broker.core.bench import TP
from tests.broker.core.cluster import Cluster, cluster_of

OK = ErrorCode.NONE


def metadata(cluster: Cluster, *topics: str, all_topics: bool = False) -> MetadataResponse:
    (answer,) = cluster.ask(2, MetadataRequest(topics=None if all_topics else topics))
    assert isinstance(answer, MetadataResponse)
    return answer


def verdicts(cluster: Cluster, request: Request) -> list[tuple[str, ErrorCode]]:
    (answer,) = cluster.ask(2, request)
    assert isinstance(answer, TopicErrors)
    return [(topic, error) for topic, error, _ in answer.errors]


def texts(cluster: Cluster, request: Request) -> list[str]:
    (answer,) = cluster.ask(2, request)
    assert isinstance(answer, TopicErrors)
    return [text for _, _, text in answer.errors]


def create(*topics: NewTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=1_000, validate_only=validate_only)


def delete(*topics: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=topics, timeout_ms=1_000)


def placed(topic: str, partitions: int, factor: int) -> NewTopic:
    return NewTopic(topic=topic, partitions=partitions, replication_factor=factor)


def assigned(topic: str, *replicas: tuple[int, ...], first: int = 0) -> NewTopic:
    return NewTopic(
        topic=topic, partitions=-1, replication_factor=-1, assignments=tuple(enumerate(replicas, first))
    )


# --- metadata --------------------------------------------------------------------------------------------------
def test_metadata_tells_the_live_brokers_the_controller_and_who_leads() -> None:
    """Source: Kafka Replication Design V3, Overview: the published decisions serve "for request routing"."""
    answer = metadata(cluster_of("kip101"), "t")
    assert [BrokerMetadata(broker_id=i, host="127.0.0.1", port=9000 + i) for i in (1, 2, 3)] == list(
        answer.brokers
    )
    assert answer.controller_id == 3
    ((topic,),) = (answer.topics,)
    (partition,) = topic.partitions
    assert (topic.topic, topic.error, partition.tp, partition.error) == ("t", OK, TP, OK)
    assert (partition.leader, partition.leader_epoch, partition.replicas, partition.isr) == (1, 0, (1, 2), (1, 2))


def test_metadata_tells_no_epoch_under_the_old_protocol() -> None:
    (topic,) = metadata(cluster_of("hw"), "t").topics
    assert [-1] == [partition.leader_epoch for partition in topic.partitions]


def test_metadata_of_all_topics_tells_all() -> None:
    cluster = cluster_of("kip101")
    cluster.create("a", replicas=(3,))
    assert [("a", OK), ("t", OK)] == [(t.topic, t.error) for t in metadata(cluster, all_topics=True).topics]


def test_metadata_answers_for_each_topic_asked_in_order() -> None:
    found = [(t.topic, t.error) for t in metadata(cluster_of("kip101"), "no/name", "t", "gone").topics]
    expected = [ErrorCode.INVALID_TOPIC, OK, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert list(zip(("no/name", "t", "gone"), expected, strict=True)) == found


def test_metadata_follows_an_election() -> None:
    """Source: Kafka Replication Design V3, Overview, discussion 6."""
    cluster = cluster_of("kip101")
    cluster.crash(1)
    answer = metadata(cluster, "t")
    assert [2, 3] == [broker.broker_id for broker in answer.brokers]
    (partition,) = answer.topics[0].partitions
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 1, (2,))


def test_leader_that_is_not_registered_is_no_leader_to_a_client() -> None:
    """Source: Kafka Replication Design V3, Overview, discussion 6."""
    cluster = cluster_of("kip101")
    cluster.benches[3].hold(leader_and_isr_path(TP), writes=True)
    cluster.crash(1)
    (partition,) = metadata(cluster, "t").topics[0].partitions
    assert (partition.leader, partition.error) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)


def test_partition_without_a_state_has_no_leader() -> None:
    cluster = cluster_of("kip101")
    u = TopicPartition("u", 0)
    cluster.benches[3].hold(leader_and_isr_path(u), writes=True)
    cluster.create("u", replicas=(1,))
    (partition,) = metadata(cluster, "u").topics[0].partitions
    assert (partition.leader, partition.error) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
    assert (partition.replicas, partition.isr) == ((1,), ())


def test_metadata_without_a_controller_says_so() -> None:
    cluster = cluster_of("kip101")
    cluster.stop(1)
    for bench in cluster.benches.values():
        cluster.zk.forget_session(bench.session)  # so that no other broker becomes controller
    cluster.zk.remove("/controller")
    assert metadata(cluster).controller_id == -1


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (BROKER_IDS, []),
        (topic_path("t"), [("t", ErrorCode.LEADER_NOT_AVAILABLE, [])]),
        (leader_and_isr_path(TP), [("t", OK, [ErrorCode.LEADER_NOT_AVAILABLE])]),
    ],
)
def test_metadata_never_calls_a_topic_unknown_when_only_the_connection_is_lost(
    path: str, expected: list[tuple[str, ErrorCode, list[ErrorCode]]]
) -> None:
    cluster = cluster_of("kip101")
    cluster.benches[2].lose(path, happened=False)
    topics = metadata(cluster, "t").topics
    assert expected == [(t.topic, t.error, [p.error for p in t.partitions]) for t in topics]


# --- create ----------------------------------------------------------------------------------------------------
def test_created_topic_is_placed_round_robin_over_the_live_brokers() -> None:
    """Source: Kafka Replication Design V3, B."""
    cluster = cluster_of("kip101")
    assert verdicts(cluster, create(placed("u", 4, 2))) == [("u", OK)]
    found = decode_assignment(cluster.zk.nodes[topic_path("u")].data)
    assert found == {0: (1, 2), 1: (2, 3), 2: (3, 1), 3: (1, 2)}
    leaders = [cluster.state(TopicPartition("u", partition)).leader for partition in range(4)]
    assert leaders == [1, 2, 3, 1]


def test_created_topic_is_placed_as_the_client_says() -> None:
    """Source: Kafka Replication Design V3, B."""
    cluster = cluster_of("kip101")
    assert verdicts(cluster, create(assigned("u", (3, 1), (2,)))) == [("u", OK)]
    assert decode_assignment(cluster.zk.nodes[topic_path("u")].data) == {0: (3, 1), 1: (2,)}


@pytest.mark.parametrize(
    ("topic", "error", "words"),
    [
        (placed("", 1, 1), ErrorCode.INVALID_TOPIC, "topic '': expected 1 to 249 of"),
        (placed("..", 1, 1), ErrorCode.INVALID_TOPIC, "topic '..': expected"),
        (placed("a/b", 1, 1), ErrorCode.INVALID_TOPIC, "topic 'a/b': expected"),
        (placed("a" * 250, 1, 1), ErrorCode.INVALID_TOPIC, "expected 1 to 249"),
        (placed("u", 0, 1), ErrorCode.INVALID_PARTITIONS, "partitions 0: expected at least 1"),
        (placed("u", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "replication factor 0: expected 1 to 3"),
        (placed("u", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR, "replication factor 4: expected 1 to 3"),
        (assigned("u", (1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partition 0 on [1, 1]: expected distinct"),
        (assigned("u", (1, 8)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "live brokers of [1, 2, 3]"),
        (assigned("u", ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partition 0 on []"),
        (assigned("u", (1,), first=1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions [1]: expected 0 to 0"),
        (placed("t", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS, "topic 't' is there already"),
    ],
)
def test_topic_that_cannot_be_made_is_refused_with_a_reason(topic: NewTopic, error: ErrorCode, words: str) -> None:
    cluster = cluster_of("kip101")
    before = dict(cluster.zk.nodes)
    assert verdicts(cluster, create(topic)) == [(topic.topic, error)]
    assert words in texts(cluster, create(topic))[0]
    assert before == cluster.zk.nodes


def test_one_bad_topic_does_not_stop_the_others() -> None:
    cluster = cluster_of("kip101")
    found = verdicts(cluster, create(placed("a", 1, 1), placed("", 1, 1), placed("b", 1, 1)))
    assert sorted(found) == [("", ErrorCode.INVALID_TOPIC), ("a", OK), ("b", OK)]


def test_topic_that_is_only_to_be_checked_is_not_made() -> None:
    cluster = cluster_of("kip101")
    assert verdicts(cluster, create(placed("u", 1, 1), validate_only=True)) == [("u", OK)]
    assert topic_path("u") not in cluster.zk.nodes


@pytest.mark.parametrize("path", [BROKER_IDS, topic_path("u")], ids=["who lives", "the write"])
def test_create_whose_answer_was_lost_is_timed_out_and_not_refused(path: str) -> None:
    cluster = cluster_of("kip101")
    cluster.benches[2].lose(path, happened=True)
    assert verdicts(cluster, create(placed("u", 1, 3))) == [("u", ErrorCode.REQUEST_TIMED_OUT)]


# --- delete ----------------------------------------------------------------------------------------------------
def test_deleted_topic_is_gone_whole() -> None:
    """Source: Kafka Replication Design V3, B, on_topic_change 2."""
    cluster = cluster_of("kip101")
    assert verdicts(cluster, delete("t", "t")) == [("t", OK)]
    assert [] == [path for path in cluster.zk.nodes if path.startswith(topic_path("t"))]
    assert cluster.roles() == {}


def test_every_topic_to_be_deleted_has_a_verdict() -> None:
    """Source: Kafka Replication Design V3, B, on_topic_change 2."""
    found = verdicts(cluster_of("kip101"), delete("t", "gone", "no/name"))
    expected = [("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("no/name", ErrorCode.INVALID_TOPIC), ("t", OK)]
    assert expected == sorted(found)


@pytest.mark.parametrize("writes", [False, True], ids=["the reading", "the write"])
def test_delete_whose_answer_was_lost_is_timed_out(writes: bool) -> None:
    cluster = cluster_of("kip101")
    cluster.benches[2].lose(topic_path("t"), happened=True, writes=writes)
    assert verdicts(cluster, delete("t")) == [("t", ErrorCode.REQUEST_TIMED_OUT)]


def test_topic_made_again_begins_empty() -> None:
    """Source: Kafka Replication Design V3, discussion 5."""
    cluster = cluster_of("kip101")
    cluster.produce(1, 3)
    cluster.delete("t")
    cluster.create(replicas=(2, 1))
    assert [0, 0] == [cluster.replica(broker).log.end_offset for broker in (1, 2)]
    assert BROKER_TOPICS in cluster.zk.nodes
