"""Many operations on ZooKeeper: sent part by part, so that others are served between the parts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import ZkAnswered, ZkAsk
from targets.broker.core.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ErrorCode,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
    StopReplicaRequest,
    TopicErrors,
    TopicPartition,
)
from targets.broker.core.state import ASK_OPS_MAX, DELETES_TOGETHER_MAX, STOPPED_TOGETHER_MAX, WRITES_IN_FLIGHT_MAX
from targets.broker.core.zookeeper import (
    ZkCheck,
    ZkDelete,
    ZkError,
    ZkMulti,
    ZkSet,
    leader_and_isr_path,
    topic_path,
)
from targets.broker.limits import Limits
from targets.simulator.zookeeper.ops import Check
from tests.broker.core.bench import Bench, answers
from tests.broker.core.cluster import Cluster

OK = ErrorCode.NONE
MANY = DELETES_TOGETHER_MAX // 2 + 100  # partitions, each with two nodes
# The bench answers an ask within the step that made it, so that a chain of asks is a chain of calls.
CALLS_MAX = 20_000


def weight(ask: ZkAsk) -> int:
    return sum(len(op.ops) if isinstance(op, ZkMulti) else 1 for op in ask.ops)


def alone(**settings: Any) -> Bench:
    """Return a broker that is controller and alone."""
    return Cluster(brokers=(1,), **settings).benches[1]


def create(*topics: NewTopic) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=1_000)


def topic(name: str, partitions: int) -> NewTopic:
    return NewTopic(topic=name, partitions=partitions, replication_factor=1)


def outcome(bench: Bench, request: Any) -> list[tuple[str, ErrorCode]]:
    (answer,) = [one for one in answers(bench.request(request)) if isinstance(one, TopicErrors)]
    return [(name, error) for name, error, _ in answer.errors]


@pytest.fixture(autouse=True, scope="module")
def long_chains() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(CALLS_MAX)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture
def large() -> Cluster:
    """A cluster of one broker with a topic of many partitions, all of them led."""
    cluster = Cluster(brokers=(1,))
    assert [("t", OK)] == outcome(cluster.benches[1], create(topic("t", MANY)))
    cluster.settle()
    return cluster


def test_no_ask_is_larger_than_others_can_wait_for(large: Cluster) -> None:
    asks = [effect for effect in large.benches[1].effects if isinstance(effect, ZkAsk)]
    assert max(weight(ask) for ask in asks if len(ask.ops) > 1) <= ASK_OPS_MAX
    assert sum(weight(ask) for ask in asks) > 2 * MANY


def test_every_partition_of_a_large_topic_is_led(large: Cluster) -> None:
    states = [large.zk.nodes.get(leader_and_isr_path(TopicPartition("t", number))) for number in range(MANY)]
    assert None not in states
    (answer,) = answers(large.benches[1].request(MetadataRequest(topics=("t",))))
    assert isinstance(answer, MetadataResponse)
    assert [1] * MANY == [partition.leader for partition in answer.topics[0].partitions]


def test_decisions_are_sent_some_at_a_time_and_none_is_forgotten() -> None:
    bench = alone()
    bench.hold(leader_and_isr_path(TopicPartition("t", 0)), writes=True)
    held: list[int] = []
    answer_ask = bench._answer_ask

    def counted(ask: ZkAsk) -> Any:
        held.append(bench.broker.state.controller.writing)
        return answer_ask(ask)

    bench._answer_ask = counted  # type: ignore[method-assign]
    outcome(bench, create(topic("t", 3 * WRITES_IN_FLIGHT_MAX)))
    bench.fire("/brokers/topics")
    assert WRITES_IN_FLIGHT_MAX == max(held)
    assert 0 < bench.broker.state.controller.writing < WRITES_IN_FLIGHT_MAX  # the multi that is held
    assert not bench.broker.state.controller.writes
    bench.release()
    assert 0 == bench.broker.state.controller.writing


def test_lost_part_of_a_long_ask_loses_the_rest_without_asking() -> None:
    bench = alone()
    names = tuple(f"t{number}" for number in range(3 * ASK_OPS_MAX))
    bench.lose(topic_path(names[ASK_OPS_MAX]), happened=False)
    before = len(bench.effects)
    (answer,) = answers(bench.request(MetadataRequest(topics=names)))
    assert isinstance(answer, MetadataResponse)
    errors = {one.error for one in answer.topics}
    assert {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE} == errors
    asks = [effect for effect in bench.effects[before:] if isinstance(effect, ZkAsk)]
    assert 2 == len([ask for ask in asks if len(ask.ops) > 10])


def test_parts_that_were_answered_in_two_sessions_are_of_none() -> None:
    bench = alone()
    names = tuple(f"t{number}" for number in range(2 * ASK_OPS_MAX))
    bench.hold(topic_path(names[0]))
    bench.request(MetadataRequest(topics=names))
    (ask,) = bench.held
    effects = bench.broker.step(0, ZkAnswered(tag=ask.tag, session=5, results=(ZkError.NO_NODE,) * len(ask.ops)))
    (second,) = [effect for effect in effects if isinstance(effect, ZkAsk)]
    (rest,) = [one for tag, one in bench.broker.state.pending.items() if tag == second.tag]
    bench.broker.step(0, ZkAnswered(tag=second.tag, session=6, results=(ZkError.NO_NODE,) * len(second.ops)))
    assert 0 == rest.session  # type: ignore[attr-defined]


# --- topics ---------------------------------------------------------------------------------------------------
def test_large_topic_is_deleted_in_several_multis_and_its_own_node_last(large: Cluster) -> None:
    bench = large.benches[1]
    before = len(bench.effects)
    assert [("t", OK)] == outcome(bench, DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    multis = [
        op for e in bench.effects[before:] if isinstance(e, ZkAsk) for op in e.ops if isinstance(op, ZkMulti)
    ]
    assert max(len(multi.ops) for multi in multis) <= DELETES_TOGETHER_MAX
    assert topic_path("t") == multis[-1].ops[-1].path
    assert [] == [path for path in large.zk.nodes if path.startswith(topic_path("t"))]


def test_deletion_in_several_multis_begins_with_the_assignment_and_is_of_one_topic(
    large: Cluster,
) -> None:
    bench = large.benches[1]
    bench.hold(f"{topic_path('t')}/0")
    bench.request(DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    before = len(bench.effects)
    bench.release()
    ops = [op for e in bench.effects[before:] if isinstance(e, ZkAsk) for op in e.ops]
    first, *later = [op.ops for op in ops if isinstance(op, ZkMulti)]
    assert ZkSet(path=topic_path("t"), data=encode_assignment({}), version=0) == first[0]
    *checked, last = later
    assert checked
    assert {ZkCheck(path=topic_path("t"), version=1)} == {parts[0] for parts in checked}
    assert (ZkDelete(path=topic_path("t"), version=1),) == last


def test_topic_that_is_being_deleted_since_it_was_read_is_not_begun_again() -> None:
    """Its first states would be written below a node that is to go, so that the deletion could not end."""
    state = leader_and_isr_path(TopicPartition("t", 0))
    cluster = Cluster("hw", brokers=(3, 1, 2))
    cluster.benches[3].hold(state, writes=True)
    cluster.create()
    assert len(cluster.benches[3].held) == 1
    # The first of several writes of a deletion empties the assignment.
    cluster.zk.put(topic_path("t"), encode_assignment({}))
    cluster.benches[3].release()
    cluster.pass_ms(1_000)
    assert (state not in cluster.zk.nodes, cluster.roles()) == (True, {})


@pytest.mark.parametrize("partitions", [2, MANY])
def test_deletion_takes_what_a_controller_wrote_since_its_partitions_were_read(partitions: int) -> None:
    bench = alone()
    outcome(bench, create(topic("t", partitions)))
    bench.fire("/brokers/topics")
    bench.hold(f"{topic_path('t')}/0")
    before = len(bench.effects)
    bench.request(DeleteTopicsRequest(topics=("t", "u"), timeout_ms=1_000))
    bench.zk.put(f"{topic_path('t')}/{partitions}")
    bench.zk.put(leader_and_isr_path(TopicPartition("t", partitions)))
    bench.release()
    (answer,) = answers(bench.effects[before:])
    errors = [(name, error) for name, error, _ in answer.errors]
    assert [("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("t", OK)] == errors
    assert [] == [path for path in bench.zk.nodes if path.startswith(topic_path("t"))]


@pytest.mark.parametrize("times", [1, 2])
def test_large_topic_that_is_written_since_it_was_read_is_deleted_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The other write makes the version that the deletion's own would make: nothing may go for that."""
    bench, path = alone(), topic_path("t")
    outcome(bench, create(topic("t", MANY)))
    bench.fire("/brokers/topics")
    there = {each for each in bench.zk.nodes if each.startswith(path)}
    original, left = bench.zk.write, [None] * times

    def write(parts: Any, session: int) -> Any:
        if left and getattr(parts[0], "data", None) == encode_assignment({}):
            left.pop()
            bench.zk.put(path, bench.zk.nodes[path].data)
        return original(parts, session)

    monkeypatch.setattr(bench.zk, "write", write)
    ((_, error),) = outcome(bench, DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    assert error is (OK if times == 1 else ErrorCode.UNKNOWN_SERVER_ERROR)
    assert {each for each in bench.zk.nodes if each.startswith(path)} == (set() if times == 1 else there)


@pytest.mark.parametrize("last", [False, True])
def test_later_part_of_a_deletion_reaches_no_younger_topic_whose_node_has_the_version(
    monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    """Source: KIP-516, Motivation. Another client has ended the deletion, and made the topic anew."""
    bench, path = alone(rules="kip380"), topic_path("t")
    outcome(bench, create(topic("t", MANY)))
    bench.fire("/brokers/topics")
    younger = {path} if last else {path, *(f"{path}/{number}" for number in range(MANY))}
    original, waiting = bench.zk.write, [younger]

    def write(parts: Any, session: int) -> Any:
        due = parts[-1].path == path if last else Check(path=path, version=1) in parts
        if due and waiting:
            waiting.clear()
            for each in sorted((each for each in bench.zk.nodes if each.startswith(path)), reverse=True):
                bench.zk.remove(each)
            for _ in range(2):
                bench.zk.put(path, encode_assignment({0: (1,)}))
            assert 1 == bench.zk.nodes[path].version
            for each in younger - {path}:
                bench.zk.put(each)
        return original(parts, session)

    monkeypatch.setattr(bench.zk, "write", write)
    ((_, error),) = outcome(bench, DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION is error
    assert younger == {each for each in bench.zk.nodes if each.startswith(path)}


def test_topic_that_is_deleted_in_part_can_be_deleted_again() -> None:
    bench = alone()
    outcome(bench, create(topic("t", 3)))
    bench.fire("/brokers/topics")
    for path in (leader_and_isr_path(TopicPartition("t", 1)), f"{topic_path('t')}/1"):
        bench.zk.remove(path)
    assert [("t", OK)] == outcome(bench, DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    assert [("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] == outcome(
        bench, DeleteTopicsRequest(topics=("t",), timeout_ms=1_000)
    )


def test_one_limit_holds_for_partitions_by_number_and_by_assignments_of_all_topics_of_a_request() -> None:
    bench = alone(limits=Limits(topic_partitions_max=10))
    assigned = NewTopic(
        topic="c", partitions=-1, replication_factor=-1, assignments=tuple((n, (1,)) for n in range(11))
    )
    few = NewTopic(topic="d", partitions=-1, replication_factor=-1, assignments=((0, (1,)), (1, (1,))))
    asked = create(topic("a", 8), topic("b", 2**31 - 1), assigned, few, topic("e", 1))
    refused = ErrorCode.INVALID_PARTITIONS
    assert [("b", refused), ("c", refused), ("e", refused), ("a", OK), ("d", OK)] == outcome(bench, asked)
    assert [("e", OK)] == outcome(bench, create(topic("e", 1)))


def test_brokers_are_told_of_deleted_partitions_some_at_a_time(large: Cluster) -> None:
    bench = large.benches[1]
    outcome(bench, DeleteTopicsRequest(topics=("t",), timeout_ms=1_000))
    large.settle()
    stops = [send.request for send in bench.sent() if isinstance(send.request, StopReplicaRequest)]
    assert STOPPED_TOGETHER_MAX == max(len(stop.partitions) for stop in stops)
    assert MANY == len({each.tp for stop in stops for each in stop.partitions})
    assert {} == bench.broker.state.replicas
