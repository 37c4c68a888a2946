"""
A topic's identity: a topic of the same name that was created later is another one (rule topic_identity).

Ids rise with every creation: they are the transaction ids with which ZooKeeper made the topics' nodes.
Source:  Kafka Replication Design V3, discussion 5; KIP-516; KIP-570 (StopReplica).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from targets.broker.core.messages import (
    EPOCH_DURING_DELETE,
    ErrorCode,
    FetchRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    StopReplica,
    StopReplicaRequest,
    StopReplicaResponse,
)
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import (
    BROKER_IDS,
    BROKER_TOPICS,
    ZkCheck,
    ZkMulti,
    ZkSet,
    broker_path,
    encode_assignment,
    encode_registration,
    leader_and_isr_path,
    topic_id_path,
    topic_path,
)
from tests.broker.core.asks import (
    ISR_STATE,
    ends_at,
    epoch_ends,
    epoch_question,
    fetch,
    fetch_answer,
    fetched,
    latest_is,
    list_offsets,
    listed,
    produce,
    registered,
)
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch, log_of, recovery, registration
from tests.broker.core.cluster import Cluster
from tests.broker.core.memory import MemoryZk

OLD, NEW = 5, 9
NAMED = "kip380"
NAMELESS = replace(PROTOCOLS[NAMED], topic_identity=False)


def started(rules: str = NAMED, *, topic_id: int = OLD) -> tuple[Bench, MemoryLog]:
    """Return broker 1 with a log of two records of epoch 3 and of this topic."""
    log = log_of((3, 2))
    log.topic_id = topic_id
    bench = Bench(rules)
    bench.start((log, recovery(log, high_watermark=2)))
    return bench, log


def errors(bench: Bench, effects: list[object]) -> list[ErrorCode]:
    found = [
        answer for answer in answers(effects) if isinstance(answer, LeaderAndIsrResponse | StopReplicaResponse)
    ]  # type: ignore[arg-type]
    return [error for answer in found for _, error in answer.errors]


def stop(topic_id: int = 0, leader_epoch: int = EPOCH_DURING_DELETE) -> StopReplicaRequest:
    asked = StopReplica(tp=TP, leader_epoch=leader_epoch, topic_id=topic_id)
    return StopReplicaRequest(controller_id=9, controller_epoch=1, ack_timeout_ms=1, partitions=(asked,))


# --- commands ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("role", ["leader", "follower", "none yet"])
def test_newer_topic_begins_with_an_empty_log_and_is_obeyed_from_epoch_0_on(role: str) -> None:
    bench, log = started()
    if role != "none yet":
        bench.command(leader=1 if role == "leader" else 2, epoch=7, topic_id=OLD)
    assert [ErrorCode.NONE] == errors(bench, bench.command(leader=1, epoch=0, topic_id=NEW))
    assert (True, NEW, 0) == (log.deleted, bench.made[-1].topic_id, bench.made[-1].end_offset)
    made = bench.replica
    assert (Role.LEADER, 0, 0, 0, NEW) == (
        made.role,
        made.leader_epoch,
        made.log.end_offset,
        made.high_watermark,
        made.topic_id,
    )


@pytest.mark.parametrize("is_init", [False, True])
def test_command_of_an_older_topic_is_refused_and_deletes_nothing(is_init: bool) -> None:
    """A late copy: its epoch is of another sequence and says nothing."""
    bench, log = started(topic_id=NEW)
    bench.command(leader=1, epoch=3, topic_id=NEW)
    effects = bench.command(leader=2, epoch=8, topic_id=OLD, is_init=is_init)
    assert [ErrorCode.INCONSISTENT_TOPIC_ID] == errors(bench, effects)
    assert (Role.LEADER, 3, False) == (bench.replica.role, bench.replica.leader_epoch, log.deleted)


def test_log_without_an_id_belongs_to_the_topic_of_the_first_command_that_has_one() -> None:
    """Source: KIP-516, as Apache Kafka's upgrade to 2.8."""
    bench, log = started(topic_id=0)
    bench.command(leader=1, epoch=4)
    assert 0 == log.topic_id
    bench.command(leader=1, epoch=5, topic_id=NEW)
    assert (NEW, NEW, False, 2) == (log.topic_id, bench.replica.topic_id, log.deleted, log.end_offset)


def test_command_without_an_id_is_for_whatever_topic_is_here() -> None:
    """An older release's controller sends none."""
    bench, log = started()
    bench.command(leader=1, epoch=4)
    assert (Role.LEADER, OLD, False) == (bench.replica.role, bench.replica.topic_id, log.deleted)


def test_without_the_rule_a_newer_topic_keeps_the_log_and_waits_for_its_epoch_to_catch_up() -> None:
    log = log_of((3, 2))
    bench = Bench(NAMELESS)
    bench.start((log, recovery(log)))
    bench.command(leader=1, epoch=3, topic_id=OLD)
    assert [ErrorCode.STALE_CONTROLLER_EPOCH] == errors(bench, bench.command(leader=2, epoch=0, topic_id=NEW))
    assert (Role.LEADER, False, 0, 0) == (bench.replica.role, log.deleted, bench.replica.topic_id, log.topic_id)


# --- StopReplica -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "error"),
    [
        pytest.param(stop(NEW), ErrorCode.NONE, id="this topic's"),
        pytest.param(stop(), ErrorCode.NONE, id="without an id"),
        pytest.param(stop(NEW + 1), ErrorCode.NONE, id="a newer topic's: this one is gone too"),
        pytest.param(stop(OLD), ErrorCode.INCONSISTENT_TOPIC_ID, id="a late copy for the topic before"),
        pytest.param(stop(NEW, leader_epoch=2), ErrorCode.FENCED_LEADER_EPOCH, id="an older epoch's"),
        pytest.param(stop(NEW, leader_epoch=3), ErrorCode.NONE, id="this epoch's"),
        pytest.param(stop(NEW, leader_epoch=-1), ErrorCode.NONE, id="without an epoch"),
    ],
)
def test_replica_is_stopped_by_commands_for_its_topic_and_its_epoch_alone(
    asked: StopReplicaRequest, error: ErrorCode
) -> None:
    """Source: KIP-570, whose sentinel for a deletion passes whatever the epoch; KIP-516."""
    bench, log = started(topic_id=NEW)
    bench.command(leader=1, epoch=3, topic_id=NEW)
    assert [error] == errors(bench, bench.request(asked))
    assert (error is ErrorCode.NONE) == log.deleted == (TP not in bench.broker.state.replicas)


def test_stop_of_a_replica_that_is_not_here_is_done() -> None:
    bench = Bench(NAMED)
    bench.start()
    assert [ErrorCode.NONE] == errors(bench, bench.request(stop(NEW)))


# --- questions between brokers -----------------------------------------------------------------------------------
def leading_new() -> Bench:
    bench, _ = started(topic_id=NEW)
    bench.command(leader=1, epoch=3, isr=(1, 2), topic_id=NEW)
    bench.request(produce())
    assert (3, 2) == (bench.replica.log.end_offset, bench.replica.high_watermark)
    return bench


def of_topic(request: FetchRequest, topic_id: int) -> FetchRequest:
    return replace(request, partitions=tuple(replace(part, topic_id=topic_id) for part in request.partitions))


@pytest.mark.parametrize(("topic_id", "high_watermark"), [(OLD, 2), (NEW + 1, 2), (NEW, 3), (0, 3)])
def test_fetch_of_another_topic_reads_nothing_and_acknowledges_nothing(topic_id: int, high_watermark: int) -> None:
    """Its offset says how much the follower has of another log; counted, it would lose acknowledged records."""
    bench = leading_new()
    (result,) = fetched(bench.request(of_topic(fetch(3, replica=2, epoch=3), topic_id)))
    refused = high_watermark == 2
    assert (ErrorCode.INCONSISTENT_TOPIC_ID if refused else ErrorCode.NONE) == result.error
    assert ((), high_watermark) == (result.batches, bench.replica.high_watermark)


@pytest.mark.parametrize("topic_id", [OLD, NEW + 1, NEW, 0])
def test_questions_about_another_topic_are_not_answered(topic_id: int) -> None:
    """An answer about another log would truncate the asker's."""
    bench = leading_new()
    question = epoch_question(3, current=3)
    question = replace(question, questions=tuple(replace(q, topic_id=topic_id) for q in question.questions))
    offsets = list_offsets(-1, replica=2, current=3)
    offsets = replace(offsets, partitions=tuple(replace(p, topic_id=topic_id) for p in offsets.partitions))
    if topic_id in (NEW, 0):
        assert [(ErrorCode.NONE, 3, 3)] == epoch_ends(bench.request(question))
        assert [(ErrorCode.NONE, 3)] == listed(bench.request(offsets))
    else:
        assert [(ErrorCode.INCONSISTENT_TOPIC_ID, -1, -1)] == epoch_ends(bench.request(question))
        assert [(ErrorCode.INCONSISTENT_TOPIC_ID, -1)] == listed(bench.request(offsets))


def test_follower_says_which_topic_it_asks_about_and_asks_again_when_it_is_another() -> None:
    bench, _ = started(topic_id=NEW)
    bench.command(leader=2, epoch=4, topic_id=NEW)
    (question,) = bench.sent()[-1].request.questions  # type: ignore[union-attr]
    assert isinstance(bench.sent()[-1].request, OffsetForLeaderEpochRequest) and NEW == question.topic_id
    bench.answer(None)
    bench.pass_ms(1_000)
    bench.answer(ends_at(2, epoch=3))
    (part,) = bench.sent()[-1].request.partitions  # type: ignore[union-attr]
    assert isinstance(bench.sent()[-1].request, FetchRequest) and NEW == part.topic_id
    asked = len(bench.sent())
    bench.answer(fetch_answer(batch(1, base=2, epoch=4), error=ErrorCode.INCONSISTENT_TOPIC_ID))
    assert (asked, 2) == (len(bench.sent()), bench.replica.log.end_offset)
    bench.pass_ms(1_000)
    bench.answer(fetch_answer(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    (part,) = bench.sent()[-1].request.partitions  # type: ignore[union-attr]
    assert isinstance(bench.sent()[-1].request, ListOffsetsRequest) and NEW == part.topic_id
    bench.answer(latest_is(1))
    assert 1 == bench.replica.log.end_offset


# --- start-up ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stated", [False, True], ids=["no state yet", "with a state"])
@pytest.mark.parametrize(("of", "deleted"), [("older", True), ("same", False), ("none", False)])
def test_start_up_deletes_the_log_of_a_topic_that_was_created_again_meanwhile(
    of: str, deleted: bool, stated: bool
) -> None:
    """Source: Kafka Replication Design V3, discussion 5, and E 4."""
    log = log_of((3, 2))
    bench = registered(NAMED)
    zk = bench.zk
    topic_id = zk.nodes[topic_path(TP.topic)].czxid
    if stated:
        zk.put_state(2, 0, (1, 2), topic_id=topic_id)
    log.topic_id = {"older": topic_id - 1, "same": topic_id, "none": 0}[of]
    bench = Bench(NAMED, zk=zk)
    bench.start((log, recovery(log, high_watermark=2)), session=8)
    assert (deleted, topic_id) == (log.deleted, bench.replica.topic_id)
    assert (0 if deleted else 2) == bench.replica.log.end_offset
    assert (Role.FOLLOWER if stated else Role.NONE) == bench.replica.role


def test_start_up_believes_no_state_of_an_older_topic() -> None:
    bench = registered(NAMED)
    bench.zk.put_state(2, 6, (1, 2), topic_id=bench.zk.nodes[topic_path(TP.topic)].czxid - 1)
    again = Bench(NAMED, zk=bench.zk)
    again.start(session=8)
    assert (Role.NONE, -1) == (again.replica.role, again.replica.leader_epoch)


def test_start_up_keeps_the_newer_topic_that_a_command_named_meanwhile() -> None:
    bench = registered(NAMED)
    topic_id = bench.zk.nodes[topic_path(TP.topic)].czxid
    again = Bench(NAMED, zk=bench.zk)
    again.hold(topic_path(TP.topic))
    again.start(session=8)
    again.command(leader=1, epoch=0, topic_id=topic_id + 1)
    again.release()
    assert (Role.LEADER, topic_id + 1) == (again.replica.role, again.replica.topic_id)


# --- the ISR -----------------------------------------------------------------------------------------------------
def test_isr_write_of_the_topic_before_does_not_reach_the_state_of_the_new_one() -> None:
    """Both states have version 0: without the id a leader that nobody has told writes itself into the new one."""
    bench = registered(NAMED, replica_lag_ms_max=10)
    zk = bench.zk
    zk.put_state(1, 0, (1, 2), topic_id=OLD)
    zk.put(topic_id_path(TP, OLD))
    bench.command(leader=1, epoch=0, topic_id=OLD)
    for path in (topic_id_path(TP, OLD), ISR_STATE):
        zk.remove(path)
    zk.put_state(2, 0, (2, 1), topic_id=NEW)
    zk.put(topic_id_path(TP, NEW))
    bench.pass_ms(20)
    assert (2, (2, 1), 0) == (zk.state().leader, zk.state().isr, zk.state().zk_version)
    assert ((1, 2), True) == (bench.replica.isr, bench.replica.isr_blocked)


def test_isr_write_of_the_same_topic_keeps_its_id() -> None:
    bench = registered(NAMED, replica_lag_ms_max=10)
    bench.zk.put_state(1, 0, (1, 2), topic_id=NEW)
    bench.zk.put(topic_id_path(TP, NEW))
    bench.command(leader=1, epoch=0, topic_id=NEW)
    bench.pass_ms(20)
    assert ((1,), NEW) == (bench.zk.state().isr, bench.zk.state().topic_id)


def test_isr_write_of_a_state_without_an_id_expects_none() -> None:
    """An older release's controller wrote it: there is no node to check."""
    bench = registered(NAMED, replica_lag_ms_max=10)
    bench.zk.put_state(1, 0, (1, 2))
    bench.command(leader=1, epoch=0)
    assert bench.replica.topic_id > 0
    bench.pass_ms(20)
    assert ((1,), 0) == (bench.zk.state().isr, bench.zk.state().topic_id)


def test_lost_isr_write_is_not_found_in_the_state_of_another_topic() -> None:
    bench = registered(NAMED, replica_lag_ms_max=10)
    bench.zk.put_state(1, 0, (1, 2), topic_id=OLD)
    bench.zk.put(topic_id_path(TP, OLD))
    bench.command(leader=1, epoch=0, topic_id=OLD)
    bench.zk.put_state(1, 0, (1,), topic_id=NEW)
    bench.lose(ISR_STATE, happened=False, writes=True)
    bench.pass_ms(20)
    assert ((1, 2), True) == (bench.replica.isr, bench.replica.isr_blocked)


# --- the controller ----------------------------------------------------------------------------------------------
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
    """Return receiver, kind and topic id of every command that is queued for 2 and 3."""
    return [
        (broker, type(command).__name__, part.topic_id)
        for broker, channel in sorted(bench.broker.state.controller.channels.items())
        for command in channel.queue
        for part in command.partitions
        if broker != 1
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
    kinds = (("LeaderAndIsrRequest", old), ("StopReplicaRequest", old), ("LeaderAndIsrRequest", new))
    assert [(broker, *kind) for broker in (2, 3) for kind in kinds] == commands(bench)
    assert (3, 0, new) == (bench.zk.state().leader, bench.zk.state().leader_epoch, bench.zk.state().topic_id)


def test_first_write_for_a_topic_that_was_created_again_meanwhile_is_replaced() -> None:
    """The new topic's replicas are others, and nobody else would tell them."""
    bench = controller()
    delete(bench.zk)
    bench.fire(BROKER_TOPICS)
    late = create(bench.zk, 2)
    bench.hold(leader_and_isr_path(TP), writes=True)
    bench.fire(BROKER_TOPICS)
    bench.zk.remove(topic_path("t"))
    new = create(bench.zk, 3)
    bench.release()
    assert (late, (2,)) == (bench.zk.state().topic_id, bench.zk.state().isr)
    bench.fire(BROKER_TOPICS)
    assert (new, 3, (3,)) == (bench.zk.state().topic_id, bench.zk.state().leader, bench.zk.state().isr)
    assert [(2, "StopReplicaRequest", late), (3, "LeaderAndIsrRequest", new)] == [
        *[each for each in commands(bench) if each[0] == 2][-1:],
        commands(bench)[-1],
    ]


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
