"""A broker's handling of the controller's commands, and its start-up: V3 C and E, KIP-101 Unclean Shutdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from targets.broker.core.assignments import encode_assignment
from targets.broker.core.events import Effect
from targets.broker.core.messages import (
    ErrorCode,
    FetchRequest,
    LeaderAndIsrResponse,
    OffsetForLeaderEpochRequest,
    StopReplica,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
)
from targets.broker.core.rules import PROTOCOLS, ReturningLeader
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import topic_path
from tests.broker.core.asks import ends_at, fetch, fetch_answer, occupied, produce, produced, read
from tests.broker.core.bench import TP, Bench, MemoryLog, answers, batch, log_of, recovery

OTHER = TopicPartition("u", 0)
NONE = ErrorCode.NONE


def errors(effects: list[Effect]) -> list[tuple[ErrorCode, list[ErrorCode]]]:
    """Return, for each command answered, its own error and those of its partitions."""
    found = [a for a in answers(effects) if isinstance(a, LeaderAndIsrResponse | StopReplicaResponse)]
    return [(answer.error, [error for _, error in answer.errors]) for answer in found]


def stop(*tps: TopicPartition, controller_epoch: int = 1) -> StopReplicaRequest:
    return StopReplicaRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        ack_timeout_ms=1,
        partitions=tuple(StopReplica(tp=tp) for tp in tps),
    )


def held(bench: Bench) -> Mapping[TopicPartition, tuple[Role, int]]:
    return {tp: (replica.role, replica.leader_epoch) for tp, replica in bench.broker.state.replicas.items()}


# --- LeaderAndISR --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("leader", "role"), [(1, Role.LEADER), (2, Role.FOLLOWER), (-1, Role.NONE)])
def test_command_starts_a_replica_that_is_not_there(leader: int, role: Role) -> None:
    """Source: Kafka Replication Design V3, C 2.0: "if P doesn't exist locally, call startReplica()"."""
    bench = Bench()
    effects = bench.command(leader=leader, epoch=0)
    assert [log.tp for log in bench.made] == [TP]
    assert errors(effects) == [(NONE, [NONE])]
    assert {TP: (role, 0)} == held(bench)


def test_leader_reports_with_what_it_begins() -> None:
    """Source: Kafka Replication Design V3, C, becomeLeader: it adopts the command's ISR and ZooKeeper version."""
    bench = Bench()
    log = log_of((0, 3))
    bench.start((log, recovery(log, high_watermark=2)))
    effects = bench.command(leader=1, epoch=4, isr=(1, 2), zk_version=6)
    expected = {"topic": "t", "partition": 0, "epoch": 4, "log_end_offset": 3, "high_watermark": 2, "isr": [1, 2]}
    assert [{**expected, "resumed": False}] == bench.observed("leader", effects)
    assert (bench.replica.isr, bench.replica.zk_version) == ((1, 2), 6)


@pytest.mark.parametrize(
    ("epoch", "expected"), [(4, ErrorCode.STALE_CONTROLLER_EPOCH), (5, NONE)], ids=["older", "equal"]
)
def test_command_of_an_older_or_equal_leader_epoch_changes_nothing(epoch: int, expected: ErrorCode) -> None:
    """Source: Kafka Replication Design V3, optimizations 1: "only follows [...] if its epoc is larger"."""
    bench = Bench()
    bench.command(leader=1, epoch=5)
    effects = bench.command(leader=2, epoch=epoch)
    assert errors(effects) == [(NONE, [expected])]
    assert held(bench) == {TP: (Role.LEADER, 5)}
    assert bench.sent(effects) == []


def test_command_of_a_deposed_controller_is_refused_whole() -> None:
    bench = Bench()
    bench.command(leader=1, epoch=0, controller_epoch=3)
    effects = bench.command(leader=2, epoch=9, controller_epoch=2, is_init=True)
    effects += bench.request(stop(TP, controller_epoch=2))
    assert errors(effects) == [(ErrorCode.STALE_CONTROLLER_EPOCH, [])] * 2
    assert held(bench) == {TP: (Role.LEADER, 0)}


def test_command_for_a_partition_that_is_not_assigned_here_is_refused() -> None:
    bench = Bench()
    effects = bench.command(leader=2, epoch=0, replicas=(2, 3))
    assert errors(effects) == [(NONE, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])]
    assert held(bench) == {}


def test_follower_becomes_leader_and_nothing_of_the_old_leader_is_appended_any_more() -> None:
    """Source: Kafka Replication Design V3, C 2.1 and becomeLeader: "no more messages from the old leader"."""
    bench = Bench()
    bench.command(leader=2, epoch=0)
    fetching = bench.sent()[-1]
    bench.command(leader=1, epoch=1)
    assert bench.answer(fetch_answer(batch(base=0, epoch=0)), to=fetching) == []
    assert bench.replica.log.end_offset == 0
    assert bench.sent(bench.pass_ms(60_000)) == []


def test_leader_becomes_follower_and_serves_nobody() -> None:
    """Source: Kafka Replication Design V3, C, becomeFollower: it "disables reads/writes to this partition"."""
    bench = Bench()
    bench.command(leader=1, epoch=0)
    effects = bench.command(leader=2, epoch=1)
    assert [(seen["epoch"], seen["leader"]) for seen in bench.observed("follower", effects)] == [(1, 2)]
    assert produced(bench.request(produce())) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert read(bench.request(fetch(0))) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, [], -1)]


@pytest.mark.parametrize(
    "protocol", [name for name, rules in PROTOCOLS.items() if not rules.truncate_when_leader_unchanged]
)
def test_follower_of_the_same_leader_takes_the_epoch_and_does_not_cut(protocol: str) -> None:
    """
    Source:  Kafka Replication Design V3, C 2.2: "and the broker is not already following L"; KAFKA-7164 is the
             bug in it, and the rule truncate_when_leader_unchanged its fix.
    """
    bench = Bench(protocol)
    bench.command(leader=2, epoch=0)
    before = len(bench.sent())
    effects = bench.command(leader=2, epoch=1)
    assert (bench.replica.leader_epoch, bench.observed("truncate", effects), len(bench.sent())) == (1, [], before)


@pytest.mark.parametrize("protocol", ["kip279-2.0.1", "kip320", "kip380", "mutant"])
def test_follower_of_the_same_leader_cuts_anew_by_rule(protocol: str) -> None:
    """
    Source:  KAFKA-7164. 2.0.1 itself skips the request when the epoch rose by one, since no election was missed
             then; this broker sends it, which truncates nothing more.
    """
    mutant = replace(PROTOCOLS["kip101"], truncate_when_leader_unchanged=True)
    bench = Bench(mutant if protocol == "mutant" else protocol)
    log = log_of((0, 3))
    bench.start((log, recovery(log)))
    bench.command(leader=2, epoch=0)
    effects = bench.command(leader=2, epoch=1)
    assert [OffsetForLeaderEpochRequest] == [type(send.request) for send in bench.sent(effects)]


def test_follower_of_another_leader_asks_that_one() -> None:
    bench = Bench()
    bench.command(leader=2, epoch=0, replicas=(1, 2, 3))
    effects = bench.command(leader=3, epoch=1, replicas=(1, 2, 3))
    assert [send.to for send in bench.sent(effects)] == [3]


def test_replica_without_a_leader_neither_serves_nor_fetches() -> None:
    """Source: Kafka Replication Design V3, A 3.2: "set the new leader to -1"."""
    bench = Bench()
    bench.command(leader=2, epoch=0)
    effects = bench.command(leader=-1, epoch=1)
    assert bench.sent(effects) == []
    assert bench.sent(bench.answer(None)) == []
    assert bench.sent(bench.pass_ms(60_000)) == []
    assert produced(bench.request(produce())) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


@pytest.mark.parametrize(("is_init", "kept"), [(True, [TP]), (False, [OTHER, TP])])
def test_init_deletes_what_it_does_not_name(is_init: bool, kept: list[TopicPartition]) -> None:
    """Source: Kafka Replication Design V3, C 3: "If the command has a flag INIT, delete all local partitions"."""
    bench = Bench()
    bench.command(leader=1, epoch=0, tp=OTHER)
    effects = bench.command(leader=1, epoch=0, is_init=is_init)
    assert kept == list(held(bench))
    assert [is_init, False] == [log.deleted for log in bench.made]
    assert [{"topic": "u", "partition": 0}] * is_init == bench.observed("stopped", effects)


# --- StopReplica -----------------------------------------------------------------------------------------------
def test_stop_replica_deletes_the_log_and_answers_who_waits() -> None:
    """Source: Kafka Replication Design V3, C, stopReplica."""
    bench = Bench()
    bench.command(leader=1, epoch=0)
    bench.request(produce(acks=-1))
    bench.request(fetch(1, wait_ms=500))
    effects = bench.request(stop(TP))
    assert errors(effects) == [(NONE, [NONE])]
    assert (held(bench), [log.deleted for log in bench.made]) == ({}, [True])
    assert produced(effects) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert read(effects) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [], -1)]


def test_stopped_follower_fetches_no_more() -> None:
    """Source: Kafka Replication Design V3, C: "stop the ReplicaFetcherThread associated with r"."""
    bench = Bench()
    bench.command(leader=2, epoch=0)
    bench.request(stop(TP))
    assert bench.answer(None) == []
    assert bench.sent(bench.pass_ms(60_000)) == []


def test_stop_of_a_replica_that_is_not_there_is_no_error() -> None:
    """Source: Kafka Replication Design V3, C: "delete the partition directory locally, if present"."""
    assert errors(Bench().request(stop(TP))) == [(NONE, [NONE])]


# --- start-up --------------------------------------------------------------------------------------------------
def starting(rules: Any, leader: int, *, epoch: int = 3, spans: tuple[tuple[int, int], ...] = ((3, 2),)) -> Bench:
    """Start broker 1 with a log, in a ZooKeeper that names this leader and another broker as controller."""
    bench = Bench(rules, zk=occupied())
    bench.zk.put_state(leader, epoch, (1, 2))
    log = log_of(*spans)
    bench.start((log, recovery(log, high_watermark=1)), session=7)
    return bench


def test_e_1_and_e_2_read_assignments_and_states_before_anything_else() -> None:
    """Source: Kafka Replication Design V3, E 1 and 2."""
    bench = starting("hw", 2)
    assert [name for name in observed_names(bench) if name not in ("recovered", "checkpoint")] == [
        "member",
        "follower",
        "truncate",
        "ready",
    ]


def observed_names(bench: Bench) -> list[str]:
    return [effect.f for effect in bench.effects if hasattr(effect, "f")]


def test_e_3_1_starts_a_replica_of_which_nothing_is_on_disk() -> None:
    """Source: Kafka Replication Design V3, E 3.1: "start replica", here one created while the broker was down."""
    bench = Bench(zk=occupied())
    bench.zk.put_state(2, 3, (2,))
    bench.start(session=7)
    assert held(bench) == {TP: (Role.FOLLOWER, 3)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_e_3_1_starts_a_replica_whose_partition_has_no_state_yet_where_topics_have_no_ids(protocol: str) -> None:
    """
    Source: Kafka Replication Design V3, E 3.1: "start replica".

    With ids it waits for a command: a topic that no controller has seen yet may be deleted unseen.
    """
    bench = Bench(protocol, zk=occupied())
    bench.start(session=7)
    assert held(bench) == ({} if PROTOCOLS[protocol].topic_identity else {TP: (Role.NONE, -1)})


def test_e_3_2_returning_leader_resumes_its_epoch_under_the_old_protocol() -> None:
    """Source: Kafka Replication Design V3, E 3.2: "become leader"."""
    bench = starting("hw", 1)
    assert held(bench) == {TP: (Role.LEADER, 3)}
    assert [seen["resumed"] for seen in bench.observed("leader")] == [True]


@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol != "hw"])
def test_returning_leader_awaits_a_new_epoch(protocol: str) -> None:
    """Source: KIP-101, returning leaders: "we require that such a condition trigger a new Leader Epoch"."""
    bench = starting(protocol, 1)
    assert held(bench) == {TP: (Role.NONE, 3)}
    assert produced(bench.request(produce())) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    bench.command(leader=1, epoch=3)
    assert held(bench) == {TP: (Role.NONE, 3)}
    effects = bench.command(leader=1, epoch=4)
    assert [(seen["epoch"], seen["resumed"]) for seen in bench.observed("leader", effects)] == [(4, False)]
    assert produced(bench.request(produce())) == [(NONE, 2)]


def test_returning_leader_resumes_by_rule_alone() -> None:
    rules = replace(PROTOCOLS["kip101"], returning_leader=ReturningLeader.RESUMES)
    assert held(starting(rules, 1)) == {TP: (Role.LEADER, 3)}


@pytest.mark.parametrize(
    ("protocol", "asks"),
    [(name, OffsetForLeaderEpochRequest if rules.epochs else FetchRequest) for name, rules in PROTOCOLS.items()],
)
def test_e_3_3_returning_follower_follows(protocol: str, asks: type) -> None:
    """Source: Kafka Replication Design V3, E 3.3; KIP-101 steps 4.1 and 4.2."""
    bench = starting(protocol, 2)
    assert held(bench) == {TP: (Role.FOLLOWER, 3)}
    assert [(2, asks)] == [(send.to, type(send.request)) for send in bench.sent()]


def test_replica_whose_partition_has_no_leader_waits() -> None:
    bench = starting("hw", -1)
    assert held(bench) == {TP: (Role.NONE, 3)}
    assert bench.sent() == []


def test_e_4_deletes_what_is_no_longer_assigned_here() -> None:
    """Source: Kafka Replication Design V3, E 4: "partitions deleted while the broker is down"."""
    bench = Bench(zk=occupied())
    bench.zk.put(topic_path("v"), encode_assignment({0: (2, 3)}))
    logs = [log_of((0, 1), tp=tp) for tp in (TP, OTHER, TopicPartition("v", 0))]
    bench.start(*[(log, recovery(log)) for log in logs], session=7)
    assert [log.deleted for log in logs] == [False, True, True]
    assert list(held(bench)) == [TP]


def test_e_4_keeps_what_a_controller_named_while_the_start_up_was_reading() -> None:
    """
    A topic created after the start-up read the list of topics is not treated as deleted.

    Source: Kafka Replication Design V3, E 4.
    """
    bench = Bench(zk=occupied())
    bench.hold(topic_path(TP.topic))
    bench.start(session=7)
    bench.zk.put_state(2, 3, (2,))
    bench.command(leader=1, epoch=0, tp=OTHER)
    bench.release()
    assert held(bench) == {OTHER: (Role.LEADER, 0), TP: (Role.FOLLOWER, 3)}
    assert [log.deleted for log in bench.made] == [False, False]


def test_start_up_does_not_undo_a_newer_command() -> None:
    bench = Bench(zk=occupied())
    bench.zk.put_state(2, 3, (1, 2))
    bench.hold(topic_path(TP.topic))
    bench.start(session=7)
    bench.command(leader=1, epoch=4)
    bench.release()
    assert held(bench) == {TP: (Role.LEADER, 4)}


# --- recovery ----------------------------------------------------------------------------------------------------
def test_recovered_log_is_told_with_its_epochs_and_high_watermark() -> None:
    """Source: KIP-101 step 4.1: "Recover all Leader Epochs from the Leader Epoch Sequence file"."""
    bench = Bench()
    log = log_of((0, 2), (3, 1))
    effects = bench.start((log, replace(recovery(log, high_watermark=2), clean=False, cut_bytes=9, reason="torn")))
    expected = {"log_end_offset": 3, "clean": False, "cut_bytes": 9, "reason": "torn", "high_watermark": 2}
    told = {"topic": "t", "partition": 0, "epochs": [[0, 0], [3, 2]], **expected}
    assert [told] == bench.observed("recovered", effects)
    assert log.epoch_writes == []


@pytest.mark.parametrize(("protocol", "left"), [("kip101", [(0, 0)]), ("kip101-text", [(0, 0), (1, 2)])])
def test_epochs_beyond_the_logs_end_are_removed_and_written_down(
    protocol: str, left: list[tuple[int, int]]
) -> None:
    """Source: KIP-101, Unclean Shutdown: removed "where the offset is greater than the log end offset"."""
    bench = Bench(protocol)
    log = log_of((0, 2))
    effects = bench.start((log, recovery(log, file_epochs=[(0, 0), (1, 2), (2, 5)], clean=False)))
    assert left == bench.replica.epochs.entries
    assert [(left, True, 2)] == log.epoch_writes
    assert [[list(entry) for entry in left]] == [seen["content"] for seen in bench.observed("checkpoint", effects)]


def test_epochs_that_the_file_lacks_are_rebuilt_from_the_batches() -> None:
    """Source: KIP-101, footnote to step 3: "we will rebuild the potentially missing part"."""
    bench = Bench("kip101")
    log = log_of((0, 2), (4, 1))
    bench.start((log, recovery(log, file_epochs=[(0, 0)], clean=False)))
    assert log.epoch_writes == [([(0, 0), (4, 2)], True, 3)]


def test_old_protocol_keeps_no_epochs_of_a_log_that_has_some() -> None:
    bench = Bench("hw")
    log = log_of((0, 2))
    bench.start((log, recovery(log)))
    assert (bench.replica.epochs.entries, log.epoch_writes) == ([], [([], True, 2)])


@pytest.mark.parametrize(("checkpoint", "start", "expected"), [(9, 0, 2), (1, 0, 1), (0, 1, 1)])
def test_high_watermark_is_held_within_the_recovered_log(checkpoint: int, start: int, expected: int) -> None:
    """Source: KAFKA-1647, KAFKA-3978: never beyond the log's end, never before its start."""
    bench = Bench()
    log = MemoryLog(TP, start_offset=start, end_offset=2)
    bench.start((log, recovery(log, high_watermark=checkpoint)))
    assert bench.replica.high_watermark == expected


def test_recovered_follower_asks_with_the_epoch_it_recovered() -> None:
    """Source: KIP-101 steps 4.1, 4.2: the power was lost before the epoch of the last batch was flushed."""
    bench = Bench("kip101")
    log = log_of((0, 2), (4, 1))
    bench.start((log, recovery(log, file_epochs=[(0, 0)], clean=False)))
    effects = bench.command(leader=2, epoch=5)
    (request,) = [send.request for send in bench.sent(effects)]
    assert isinstance(request, OffsetForLeaderEpochRequest)
    assert [question.leader_epoch for question in request.questions] == [4]
    bench.answer(ends_at(3))
    assert bench.replica.log.end_offset == 3
