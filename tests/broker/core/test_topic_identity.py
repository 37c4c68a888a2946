"""
A topic's identity: a topic of the same name that was created later is another one (rule topic_identity).

Ids rise with every creation: they are the transaction ids with which ZooKeeper made the topics' nodes.
Source:  Kafka Replication Design V3, discussion 5; KIP-516; KIP-570 (StopReplica).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from targets.broker.core.messages import (
    EPOCH_DURING_DELETE,
    NO_TOPIC_ID,
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
from targets.broker.core.rules import PROTOCOLS, Rules
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import leader_and_isr_path, topic_id_path, topic_path
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
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch, log_of, recovery

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


@pytest.mark.parametrize("leader", [1, 2, -1])
def test_command_without_an_id_is_for_whatever_topic_is_here_and_leaves_it_without_one(leader: int) -> None:
    """An older release's controller sends none, and may speak of the next topic."""
    bench, log = started()
    bench.command(leader=leader, epoch=4)
    assert (leader, 0, 0, False) == (bench.replica.leader, bench.replica.topic_id, log.topic_id, log.deleted)
    bench.command(leader=1, epoch=5, topic_id=NEW)
    assert (NEW, False, 2) == (log.topic_id, log.deleted, log.end_offset)


def test_command_without_an_id_that_is_not_acted_on_takes_none_away() -> None:
    bench, log = started()
    bench.command(leader=1, epoch=4, topic_id=OLD)
    bench.command(leader=2, epoch=4)
    assert (OLD, OLD) == (bench.replica.topic_id, log.topic_id)


@pytest.mark.parametrize(("rules", "left"), [(NAMELESS, 0), (NAMED, OLD)], ids=["names", "ids"])
def test_log_keeps_no_id_where_topics_are_known_by_their_names(rules: Rules | str, left: int) -> None:
    """Source: Kafka's Log from 2.8 on: partition.metadata goes under an older inter-broker protocol version."""
    log = log_of((3, 2))
    log.topic_id = OLD
    bench = Bench(rules)
    bench.start((log, recovery(log)))
    assert (left, left, False) == (log.topic_id, bench.replica.topic_id, log.deleted)


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
        pytest.param(stop(NEW + 1, leader_epoch=2), ErrorCode.NONE, id="a newer topic's: its epochs are others"),
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
    bench.broker.state.started = True  # it has read ZooKeeper; before that, what names an epoch waits
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
    assert deleted == log.deleted
    if deleted and not stated:  # the new topic's replica begins with a command
        assert {} == bench.broker.state.replicas
        return
    assert topic_id == bench.replica.topic_id
    assert (0 if deleted else 2) == bench.replica.log.end_offset
    assert (Role.FOLLOWER if stated else Role.NONE) == bench.replica.role


@pytest.mark.parametrize("of", ["older", "same"])
def test_start_up_tells_the_log_of_an_older_topic_also_where_the_state_has_no_id(of: str) -> None:
    """An older release's leader leaves it out; whoever obeys one keeps no id, so that an older one is true."""
    zk = registered(NAMED).zk
    topic_id = zk.nodes[topic_path(TP.topic)].czxid
    zk.put_state(2, 0, (1, 2))
    log = log_of((3, 2))
    log.topic_id = topic_id - (of == "older")
    bench = Bench(NAMED, zk=zk)
    bench.start((log, recovery(log, high_watermark=2)), session=8)
    assert (of == "older", 0 if of == "older" else 2) == (log.deleted, bench.replica.log.end_offset)
    assert (Role.FOLLOWER, 0) == (bench.replica.role, bench.replica.topic_id)


def test_start_up_believes_no_state_of_an_older_topic() -> None:
    bench = registered(NAMED)
    bench.zk.put_state(2, 6, (1, 2), topic_id=bench.zk.nodes[topic_path(TP.topic)].czxid - 1)
    again = Bench(NAMED, zk=bench.zk)
    again.start(session=8)
    assert {} == again.broker.state.replicas


def test_start_up_keeps_the_newer_topic_that_a_command_named_meanwhile() -> None:
    bench = registered(NAMED)
    topic_id = bench.zk.nodes[topic_path(TP.topic)].czxid
    again = Bench(NAMED, zk=bench.zk)
    again.hold(topic_path(TP.topic))
    again.start(session=8)
    again.command(leader=1, epoch=0, topic_id=topic_id + 1)
    again.release()
    assert (Role.LEADER, topic_id + 1) == (again.replica.role, again.replica.topic_id)


ALL_THAT_IS_LEFT = LeaderAndIsrRequest(
    controller_id=9, controller_epoch=1, ack_timeout_ms=1, is_init=True, partitions=()
)


@pytest.mark.parametrize(
    ("command", "age", "starts"),
    [
        pytest.param(stop, 0, False, id="deletion of this topic"),
        pytest.param(stop, -1, True, id="deletion of the one before"),
        pytest.param(lambda _: stop(NO_TOPIC_ID), 0, False, id="deletion of whichever has its name"),
        pytest.param(lambda _: ALL_THAT_IS_LEFT, 0, False, id="all that is left"),
    ],
)
@pytest.mark.parametrize("kept", [False, True], ids=["no log", "with a log"])
def test_start_up_starts_no_replica_whose_deletion_a_command_named_meanwhile(
    command: Callable[[int], StopReplicaRequest | LeaderAndIsrRequest], age: int, starts: bool, kept: bool
) -> None:
    """The reading is older than the command, and no one says again that the topic is gone."""
    zk = registered(NAMED).zk
    topic_id = zk.nodes[topic_path(TP.topic)].czxid
    zk.put_state(2, 0, (1, 2), topic_id=topic_id)
    log = log_of((0, 2))
    log.topic_id = topic_id
    bench = Bench(NAMED, zk=zk)
    bench.hold(leader_and_isr_path(TP))
    bench.start(*[(log, recovery(log))] * kept, session=8)
    bench.request(command(topic_id + age))
    bench.release()
    assert ([TP] if starts else []) == list(bench.broker.state.replicas)
    assert [{}] == bench.observed("ready")
    # The next topic of that name begins with its own command.
    bench.command(leader=2, epoch=0, topic_id=topic_id + 1)
    assert (Role.FOLLOWER, topic_id + 1) == (bench.replica.role, bench.replica.topic_id)


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
    assert not bench.replica.topic_id
    bench.pass_ms(20)
    assert ((1,), 0) == (bench.zk.state().isr, bench.zk.state().topic_id)


def test_leader_that_a_controller_without_ids_commanded_keeps_the_id_once_another_names_it() -> None:
    """At the end of an upgrade: nothing is decided anew about this leader, which hears of its epoch once more."""
    bench = registered(NAMED, replica_lag_ms_max=10)
    bench.zk.put_state(1, 0, (1, 2), topic_id=NEW)
    bench.zk.put(topic_id_path(TP, NEW))
    bench.command(leader=1, epoch=0)
    bench.command(leader=1, epoch=0, topic_id=NEW)
    bench.pass_ms(20)
    assert ((1,), NEW) == (bench.zk.state().isr, bench.zk.state().topic_id)


def test_lost_isr_write_is_not_found_in_the_state_of_another_topic() -> None:
    bench = registered(NAMED, replica_lag_ms_max=10)
    bench.zk.put_state(1, 0, (1, 2), topic_id=OLD)
    bench.zk.put(topic_id_path(TP, OLD))
    bench.command(leader=1, epoch=0, topic_id=OLD)
    bench.zk.put_state(1, 0, (1,), topic_id=NEW)
    bench.lose(ISR_STATE, happened=False, writes=True)
    bench.pass_ms(20)
    assert ((1, 2), True) == (bench.replica.isr, bench.replica.isr_blocked)
