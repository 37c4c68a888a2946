"""
Moves that are cancelled, changed or refused, or wait for others.

Source:  KIP-455; Kafka Replication Design V3, F.
"""

from __future__ import annotations

import pytest

from targets.broker.core.assignments import Assignment, Move, decode_topic, encode_assignment, encode_topic
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    ErrorCode,
    FetchRequest,
    ListReassignmentsRequest,
    MorePartitions,
    PartitionError,
    PartitionErrors,
    Reassignment,
    ReassignmentsResponse,
    Response,
    TopicErrors,
    TopicPartition,
    WantedReplicas,
)
from targets.broker.core.zookeeper import BROKER_TOPICS, CONTROLLER, ELECTIONS, topic_path
from targets.simulator.zookeeper.ops import Set
from tests.broker.core.bench import TP, answers
from tests.broker.core.cluster import Cluster
from tests.broker.core.moving import CHECK_MS, OK, RECORDS, alter, cluster_of, holders, is_moved, listed, node


@pytest.mark.parametrize("dies", [None, 2])
def test_cancelled_move_gives_up_what_it_has_added(dies: int | None) -> None:
    """KIP-455: "null to cancel a pending reassignment"; no replica of before need be alive but one in sync."""
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    assert 3 in cluster.state().isr and 3 in holders(cluster)
    if dies is not None:
        cluster.crash(dies)
    assert OK is alter(cluster)
    cluster.pass_ms(2 * CHECK_MS)
    assert Assignment(replicas={0: (1, 2)}, made=cluster.mark()) == node(cluster) and () == listed(cluster)
    assert 1 == cluster.state().leader and {3, 4}.isdisjoint(holders(cluster))
    assert ErrorCode.NO_REASSIGNMENT_IN_PROGRESS is alter(cluster)


def test_cancelled_move_waits_for_a_replica_of_before_if_none_is_in_sync() -> None:
    """To give up the only replicas that have what is committed would lose it."""
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    for broker in (2, 1):
        cluster.crash(broker)
    cluster.produce(3, 1)
    assert OK is alter(cluster)
    cluster.pass_ms(3 * CHECK_MS)
    assert 3 == cluster.state().leader and {3, 4} <= set(holders(cluster))
    for broker in (1, 2):
        cluster.start(broker)
    cluster.release()
    cluster.pass_ms(3 * CHECK_MS)
    is_moved(cluster, 1, 2, records=RECORDS + 1)


def test_another_target_takes_the_place_of_the_first() -> None:
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    assert OK is alter(cluster, 2, 3)
    cluster.pass_ms(2 * CHECK_MS)
    is_moved(cluster, 2, 3)


def test_move_that_is_cancelled_while_it_begins_is_cancelled() -> None:
    """
    The step is written between the cancel's reading and its write.

    Source:  Kafka, KafkaController.alterPartitionReassignments: one thread does both, so that neither can fail.
    """
    cluster = cluster_of()
    controller = cluster.benches[5]
    controller.hold(ELECTIONS)
    assert OK is alter(cluster, 3, 4)
    controller.hold(topic_path("t"), writes=True)
    cancel = AlterReassignmentsRequest(partitions=(WantedReplicas(tp=TP, replicas=None),), timeout_ms=1_000)
    assert [] == cluster.ask(5, cancel)
    steps: list[Assignment] = []
    cluster.zk.wrote.append(
        lambda parts, _: steps.extend(
            decode_topic(part.data) for part in parts if isinstance(part, Set) and part.path == topic_path("t")
        )
    )
    effects = controller.release()
    assert [PartitionErrors(error=OK, errors=(PartitionError(TP, OK),))] == answers(effects)
    cluster.pass_ms(2 * CHECK_MS)
    move = Move(origin=(1, 2), target=(3, 4))
    cancelled = Move(origin=(1, 2), target=(1, 2))
    assert [{0: move}, {0: cancelled}, {}] == [step.moves for step in steps]
    is_moved(cluster, 1, 2)


def test_topic_that_is_written_again_and_again_is_read_once_more_and_no_more() -> None:
    cluster = cluster_of()
    controller, before = cluster.benches[5], node(cluster)
    controller.hold(topic_path("t"), writes=True)
    wanted = WantedReplicas(tp=TP, replicas=(3, 4))
    assert [] == cluster.ask(5, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
    found: list[Response] = []
    for _ in range(2):
        assert [] == found and controller.held
        cluster.zk.put(topic_path("t"), encode_topic(before))
        found += answers(controller.release(then_hold=True))
    (answer,) = found
    assert isinstance(answer, PartitionErrors) and not controller.held and before == node(cluster)
    assert ErrorCode.REQUEST_TIMED_OUT is answer.errors[0].error
    assert "its topic was changed meanwhile" in answer.errors[0].text


def test_controller_deposed_while_it_reads_once_more_says_what_it_has_written_before() -> None:
    cluster = cluster_of()
    cluster.create("u", replicas=(1, 2))
    controller, before = cluster.benches[5], node(cluster)
    controller.hold(topic_path("t"), writes=True)
    tps = TopicPartition("u", 0), TP
    wanted = tuple(WantedReplicas(tp=tp, replicas=(3, 4)) for tp in tps)
    assert [] == cluster.ask(5, AlterReassignmentsRequest(partitions=wanted, timeout_ms=1_000))
    cluster.zk.put(topic_path("t"), encode_topic(before))
    controller.hold(topic_path("t"))
    assert [] == answers(controller.release(then_hold=True))
    depose(cluster)
    controller.fire(CONTROLLER)
    (answer,) = answers(controller.release())
    assert isinstance(answer, PartitionErrors) and answer.error is OK and before == node(cluster)
    assert [(tps[0], OK), (TP, ErrorCode.NOT_CONTROLLER)] == [each[:2] for each in answer.errors]


@pytest.mark.parametrize(
    ("replicas", "tp", "to", "error"),
    [
        ((3, 3), TP, 5, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((3, 9), TP, 5, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((3, 4), TopicPartition("t", 7), 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((3, 4), TopicPartition("none", 0), 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((3, 4), TopicPartition("a/b", 0), 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((), TP, 5, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ((3, 4), TP, 1, ErrorCode.NOT_CONTROLLER),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(
    replicas: tuple[int, ...], tp: TopicPartition, to: int, error: ErrorCode
) -> None:
    cluster = cluster_of()
    before = node(cluster)
    assert error is alter(cluster, *replicas, tp=tp, to=to)
    assert before == node(cluster)


def test_partitions_are_added_to_a_topic_only_once_nothing_of_it_is_moved() -> None:
    """Source: Kafka, AdminManager.createPartitions: REASSIGNMENT_IN_PROGRESS."""
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    more = CreatePartitionsRequest(topics=(MorePartitions(topic="t", count=2),), timeout_ms=1_000)
    (answer,) = cluster.ask(5, more)
    assert isinstance(answer, TopicErrors) and answer.errors[0][1] is ErrorCode.REASSIGNMENT_IN_PROGRESS
    cluster.release()
    cluster.pass_ms(2 * CHECK_MS)
    (answer,) = cluster.ask(5, more)
    assert isinstance(answer, TopicErrors) and answer.errors[0][1] is OK
    assert {0, 1} == node(cluster).replicas.keys()


def test_topic_that_is_deleted_while_it_is_moved_leaves_no_replica() -> None:
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    assert [1, 2, 3, 4] == holders(cluster)
    cluster.delete("t")
    assert [] == holders(cluster) and () == listed(cluster)


def test_so_many_are_moved_at_once_and_the_others_in_their_order() -> None:
    cluster = cluster_of(reassignments_max=1)
    cluster.zk.put(topic_path("u"), encode_assignment(dict.fromkeys(range(3), (1, 2))))
    cluster.benches[5].fire("/brokers/topics")
    cluster.settle()
    cluster.hold(3, 1, FetchRequest)
    many = tuple(WantedReplicas(tp=TopicPartition("u", at), replicas=(3, 4)) for at in range(3))
    cluster.ask(5, AlterReassignmentsRequest(partitions=many, timeout_ms=1_000))
    cluster.pass_ms(2 * CHECK_MS)
    has = decode_topic(cluster.zk.nodes[topic_path("u")].data)
    assert ({0: (1, 2, 3, 4), 1: (1, 2), 2: (1, 2)}, 3) == (has.replicas, len(has.moves))
    cluster.release()
    cluster.pass_ms(4 * CHECK_MS)
    has = decode_topic(cluster.zk.nodes[topic_path("u")].data)
    assert (dict.fromkeys(range(3), (3, 4)), {}) == (has.replicas, has.moves)


# --- the list ------------------------------------------------------------------------------------------------
def ask_list(cluster: Cluster, *partitions: TopicPartition) -> list[ReassignmentsResponse]:
    """Ask the controller for what is moved, of all partitions if none is named; [] while it waits."""
    request = ListReassignmentsRequest(partitions=partitions or None, timeout_ms=1_000)
    found = cluster.ask(5, request)
    return [each for each in found if isinstance(each, ReassignmentsResponse)]


def depose(cluster: Cluster) -> None:
    """Let another broker take office, and the controller hear of it once what it asks is answered."""
    cluster.zk.nodes.pop(CONTROLLER)
    cluster.benches[1].fire(CONTROLLER)
    assert [5, 1] == cluster.in_office


@pytest.mark.parametrize("partitions", [(), (TP,)])
def test_move_is_listed_once_its_request_is_answered_whenever_the_controller_reads(
    partitions: tuple[TopicPartition, ...],
) -> None:
    """Source: Kafka, KafkaController.alterPartitionReassignments: its context has the move before the answer."""
    cluster = cluster_of()
    cluster.benches[5].hold(ELECTIONS)
    assert OK is alter(cluster, 3, 4)
    moved = Reassignment(tp=TP, replicas=(1, 2, 3, 4), adding=(3, 4), removing=(1, 2))
    assert [ReassignmentsResponse(error=OK, reassignments=(moved,))] == ask_list(cluster, *partitions)
    assert OK is alter(cluster)
    assert [ReassignmentsResponse(error=OK, reassignments=())] == ask_list(cluster, *partitions)


def test_what_is_not_moved_or_not_there_is_not_listed() -> None:
    cluster = cluster_of()
    cluster.benches[5].hold(ELECTIONS)
    assert OK is alter(cluster, 3, 4)
    named = (TopicPartition("t", 7), TopicPartition("none", 0), TopicPartition("a/b", 0))
    assert [ReassignmentsResponse(error=OK, reassignments=())] == ask_list(cluster, *named)
    assert [ReassignmentsResponse(error=OK, reassignments=())] == ask_list(cluster, *named[2:])


@pytest.mark.parametrize("path", [BROKER_TOPICS, topic_path("t")])
def test_list_that_cannot_be_read_is_an_error_and_not_empty(path: str) -> None:
    cluster = cluster_of()
    cluster.benches[5].lose(path, happened=False)
    refused = ReassignmentsResponse(error=ErrorCode.REQUEST_TIMED_OUT, reassignments=())
    assert [refused] == ask_list(cluster)


@pytest.mark.parametrize("path", [BROKER_TOPICS, topic_path("t")])
def test_list_is_refused_by_a_controller_that_is_deposed_while_it_reads(path: str) -> None:
    cluster = cluster_of()
    controller = cluster.benches[5]
    controller.hold(path)
    assert [] == ask_list(cluster)
    depose(cluster)
    controller.fire(CONTROLLER)
    refused = ReassignmentsResponse(error=ErrorCode.NOT_CONTROLLER, reassignments=())
    assert [refused] == answers(controller.release())


@pytest.mark.parametrize("writes", [False, True])
def test_deposed_controller_notes_no_move_and_says_so(*, writes: bool) -> None:
    """
    The next controller's first reading may have been before: nobody would begin the move.

    Source:  Kafka, KafkaZkClient: what a controller writes checks the epoch of /controller_epoch.
    """
    cluster = cluster_of()
    controller, before = cluster.benches[5], node(cluster)
    controller.hold(topic_path("t"), writes=writes)
    wanted = WantedReplicas(tp=TP, replicas=(3, 4))
    assert [] == cluster.ask(5, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
    depose(cluster)
    (answer,) = [each for each in answers(controller.release()) if isinstance(each, PartitionErrors)]
    (refused,) = answer.errors
    assert PartitionError(TP, ErrorCode.NOT_CONTROLLER) == PartitionError(*refused[:2])
    assert "no longer the controller" in refused[2] and before == node(cluster)


def test_controller_that_knows_that_it_is_deposed_writes_no_move() -> None:
    cluster = cluster_of()
    controller, before = cluster.benches[5], node(cluster)
    controller.hold(topic_path("t"))
    wanted = WantedReplicas(tp=TP, replicas=(3, 4))
    assert [] == cluster.ask(5, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
    depose(cluster)
    controller.fire(CONTROLLER)
    refused = PartitionErrors(error=ErrorCode.NOT_CONTROLLER, errors=())
    assert [refused] == answers(controller.release()) and before == node(cluster)
