"""
Two topics of one name, both of whose nodes begin at version 0: what was read of one is not written into the next.

Source:  Kafka Replication Design V3, discussion 5; KIP-516.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from targets.broker.core.assignments import Assignment, Move, decode_topic, encode_assignment, encode_topic
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    MorePartitions,
    NewTopic,
    PartitionErrors,
    Request,
    TopicErrors,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.wishes import Wishes, encode_wishes
from targets.broker.core.zookeeper import ELECTIONS, NodeError, leader_and_isr_path, topic_path
from targets.simulator.zookeeper import ops
from tests.broker.core.bench import TP, answers
from tests.broker.core.cluster import Cluster
from tests.broker.core.test_long_asks import alone, outcome

CONTROLLER, OTHER = 4, 2
PATH = topic_path("t")
LAST = TopicPartition("t", 2)
FIRST = {0: (1, 2), 1: (1, 2), 2: (1, 2)}
NEXT = {0: (2, 3), 1: (3, 2), 2: (2, 3)}


def cluster_of(protocol: str = "kip380") -> Cluster:
    return Cluster(protocol, brokers=(CONTROLLER, 1, 2, 3), reassignment_check_ms=1_000)


def create(cluster: Cluster, assignments: dict[int, tuple[int, ...]]) -> None:
    new = NewTopic(topic="t", partitions=-1, replication_factor=-1, assignments=tuple(assignments.items()))
    (answer,) = cluster.ask(OTHER, CreateTopicsRequest(topics=(new,), timeout_ms=1_000))
    assert isinstance(answer, TopicErrors) and answer.errors[0][1] is ErrorCode.NONE


def create_again(cluster: Cluster) -> int:
    """Delete the topic, and create the next of its name; return that one's id."""
    cluster.delete("t", via=OTHER)
    assert PATH not in cluster.zk.nodes
    create(cluster, NEXT)
    return cluster.zk.nodes[PATH].czxid


def node(cluster: Cluster) -> Assignment:
    return decode_topic(cluster.zk.nodes[PATH].data)


def ids_written(cluster: Cluster) -> list[int]:
    """Return a list that gets the id in each state that is written from now on."""
    written: list[int] = []
    cluster.zk.wrote.append(
        lambda parts, _: written.extend(
            json.loads(part.data)["topic_id"]
            for part in parts
            if isinstance(part, ops.Create | ops.Set) and part.path.endswith("/leaderAndISR")
        )
    )
    return written


def test_first_states_are_of_the_topic_that_is_there() -> None:
    """Obeyed, they would put the replicas of the first topic on brokers to which the next is not assigned."""
    cluster = cluster_of()
    controller = cluster.benches[CONTROLLER]
    controller.hold(leader_and_isr_path(TP), writes=True)
    create(cluster, FIRST)
    assert controller.held
    topic_id = create_again(cluster)
    written = ids_written(cluster)
    controller.release()
    cluster.pass_ms(1_000)
    assert {topic_id} == set(written)
    for partition, replicas in NEXT.items():
        state = cluster.state(TopicPartition("t", partition))
        assert (replicas[0], replicas, topic_id) == (state.leader, state.isr, state.topic_id)
    assert [2, 3] == sorted(cluster.roles())


@pytest.mark.parametrize(
    "request_",
    [
        AlterReassignmentsRequest(partitions=(WantedReplicas(tp=TP, replicas=(3, 4)),), timeout_ms=1_000),
        CreatePartitionsRequest(topics=(MorePartitions(topic="t", count=5),), timeout_ms=1_000),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_a_client_wants_of_a_topic_is_not_written_into_the_next(request_: Request) -> None:
    cluster = cluster_of()
    create(cluster, FIRST)
    controller = cluster.benches[CONTROLLER]
    controller.hold(PATH, writes=True)
    before = len(controller.effects)
    controller.request(request_)
    assert controller.held
    create_again(cluster)
    controller.release()
    (answer,) = answers(controller.effects[before:])[-1:]
    assert isinstance(answer, PartitionErrors | TopicErrors)
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION is answer.errors[0][1]
    assert Assignment(replicas=NEXT, made=cluster.mark()) == node(cluster)


@pytest.mark.parametrize(
    ("wishes", "first"),
    [
        (Wishes(moves={TP: (3, 4)}), Assignment(replicas=NEXT, moves={0: Move(origin=(2, 3), target=(3, 4))})),
        (Wishes(removals=(LAST,)), Assignment(replicas={0: (2, 3), 1: (3, 2)}, once=3)),
    ],
    ids=["moves", "removals"],
)
def test_what_an_operator_wants_of_a_topic_is_done_to_what_the_next_one_has(
    wishes: Wishes, first: Assignment
) -> None:
    """An operator names a topic by its name, so the wish is for the one that is there when it is taken."""
    cluster = cluster_of()
    controller = cluster.benches[CONTROLLER]
    controller.hold(PATH, writes=True)
    cluster.zk.put(ELECTIONS, encode_wishes(wishes))
    create(cluster, FIRST)
    assert [PATH] == [part.path for ask in controller.held for op in ask.ops for part in op.ops[-1:]]  # type: ignore[union-attr]
    create_again(cluster)
    written: list[Assignment] = []
    cluster.zk.wrote.append(
        lambda parts, _: written.extend(
            decode_topic(part.data) for part in parts if isinstance(part, ops.Set) and part.path == PATH
        )
    )
    controller.release()
    cluster.pass_ms(3_000)
    assert replace(first, made=cluster.mark()) == written[0]
    assert ELECTIONS not in cluster.zk.nodes and not node(cluster).moves


def test_deletion_of_a_topic_takes_the_next_one_only_if_that_has_been_read() -> None:
    """Neither has a state yet, so that nothing is below them but what tells them apart."""
    bench = alone(rules="kip380")
    outcome(
        bench,
        CreateTopicsRequest(topics=(NewTopic(topic="t", partitions=1, replication_factor=1),), timeout_ms=1_000),
    )
    bench.hold(PATH, writes=True)
    before = len(bench.effects)
    bench.request(DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    assert bench.held
    for path in sorted((path for path in bench.zk.nodes if path.startswith(PATH)), reverse=True):
        bench.zk.remove(path)
    bench.zk.put(PATH, encode_assignment({0: (1,)}))
    bench.release()
    (answer,) = answers(bench.effects[before:])
    assert isinstance(answer, TopicErrors) and answer.errors[0][1] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [PATH] == [path for path in bench.zk.nodes if path.startswith(PATH)]


def test_no_two_topics_have_one_mark() -> None:
    """Not those of one broker, of two, of one process and the next, nor those of a session and the next."""
    cluster = cluster_of()
    marks: list[str] = []

    def make(broker: int) -> None:
        cluster.create(via=broker)
        marks.append(node(cluster).made)
        assert cluster.mark() == marks[-1]
        cluster.delete("t")

    for broker in (OTHER, OTHER, 3):
        make(broker)
    cluster.crash(OTHER)
    cluster.start(OTHER)
    make(OTHER)
    cluster.expire(cluster.benches[OTHER].session)
    cluster.benches[OTHER].connect(cluster.new_session())
    cluster.settle()
    make(OTHER)
    assert all(marks) and 5 == len(set(marks))


@pytest.mark.parametrize("protocol", [name for name, rules in PROTOCOLS.items() if not rules.topic_identity])
def test_topic_without_an_identity_has_no_mark(protocol: str) -> None:
    cluster = cluster_of(protocol)
    cluster.create()
    assert ("", "") == (node(cluster).made, cluster.mark())


def test_mark_of_a_broker_that_is_not_registered_would_be_that_of_another() -> None:
    cluster = cluster_of()
    other = cluster.benches[OTHER].broker.state
    other.registration, registered = 0, other.registration
    cluster.create(via=OTHER)
    # The controller has given it one.
    assert node(cluster).made == cluster.mark() != ""
    assert not cluster.mark().startswith(("0-", f"{registered}-"))


@pytest.mark.parametrize("made", ["7", "7-", "7-1/..", "-7-1", 7, None, ["7-1"], "7-1 "])
def test_what_is_no_mark_cannot_be_read_as_one(made: object) -> None:
    """A path is made of it."""
    data = json.dumps({"partitions": {"0": [1]}, "made": made}).encode()
    with pytest.raises(NodeError, match="expected a mark, as 167-12"):
        decode_topic(data)


def test_mark_is_read_as_it_was_written() -> None:
    has = Assignment(replicas={0: (1,)}, made="167-12")
    assert has == decode_topic(encode_topic(has))
