"""
Partitions that are moved to other replicas: what is written when, who leads meanwhile, and whoever dies.

Source:  Kafka Replication Design V3, Paths 5, F 1 and 2 (on_partitions_reassigned, Reassignment Agent); KIP-455.
"""

from __future__ import annotations

from typing import Any

import pytest

from targets.broker.core.assignments import Assignment, Move
from targets.broker.core.events import Effect, Event, Send, ZkAsk
from targets.broker.core.messages import (
    AlterReassignmentsRequest,
    ErrorCode,
    FetchRequest,
    LeaderAndIsrRequest,
    Reassignment,
    StopReplica,
    StopReplicaRequest,
    WantedReplicas,
)
from targets.broker.core.reassignment import next_step, note
from targets.broker.core.rules import PROTOCOLS
from targets.broker.core.state import Role
from targets.broker.core.zookeeper import BROKER_TOPICS, PartitionState
from tests.broker.core.bench import TP, Bench
from tests.broker.core.moving import CHECK_MS, OK, RECORDS, alter, cluster_of, holders, is_moved, listed, node
from tests.broker.core.test_missed_deletions import come_back, leave


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("target", [(3, 4), (2, 3), (3, 1), (1,), (2,), (4,), (1, 2, 3), (2, 1), (4, 3, 1, 2)])
def test_partition_moves_to_other_replicas_with_its_records(protocol: str, target: tuple[int, ...]) -> None:
    """V3 F; also another replication factor, and another order alone."""
    cluster = cluster_of(protocol)
    assert OK is alter(cluster, *target)
    cluster.pass_ms(2 * CHECK_MS)
    is_moved(cluster, *target)
    assert () == listed(cluster)
    cluster.produce(cluster.state().leader, 1)
    cluster.pass_ms(CHECK_MS)
    is_moved(cluster, *target, records=RECORDS + 1)


def test_leadership_moves_only_once_the_whole_new_set_is_in_sync() -> None:
    """
    V3 F, 3.2: "if ISR == AR+RAR // this means that all replicas have caught up".

    Source:  Kafka Replication Design V3, F 3.
    """
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(3 * CHECK_MS)
    assert (1, {1, 2, 3}) == (cluster.state().leader, set(cluster.state().isr))
    assert {0: (1, 2, 3, 4)} == node(cluster).replicas
    assert (Reassignment(tp=TP, replicas=(1, 2, 3, 4), adding=(3, 4), removing=(1, 2)),) == listed(cluster)
    cluster.release()
    cluster.pass_ms(2 * CHECK_MS)
    is_moved(cluster, 3, 4)


def test_old_leader_that_has_not_heard_that_it_is_over_commits_nothing() -> None:
    """V3, discussion 3: "in order to shrink ISR, broker A has to write the new ISR in ZK", and cannot."""
    cluster = cluster_of()
    cluster.hold(5, 1, StopReplicaRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(2 * CHECK_MS)
    assert 3 == cluster.state().leader and cluster.replica(1).role is Role.LEADER
    assert [] == cluster.produce(1, 1)
    cluster.pass_ms(CHECK_MS)
    assert RECORDS == cluster.replica(1).high_watermark
    cluster.release()
    is_moved(cluster, 3, 4)


class Mortal(Bench):
    """A broker that dies after it has done so many things: each is sent, or written, and it never hears of it."""

    left: int | None = None

    def step(self, event: Event) -> list[Effect]:
        """Process one event, as far as it lives."""
        if self.left == 0:
            return []
        done = []
        for effect in self.broker.step(self.now_ns, event):
            if self.left is not None and isinstance(effect, ZkAsk | Send):
                self.left -= 1
            done.append(effect)
            if self.left == 0:
                break
        self.effects += done
        return done + [e for ask in done if isinstance(ask, ZkAsk) for e in self._answer_ask(ask)]


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip320", "kip380"])
@pytest.mark.parametrize("target", [(3, 4), (2, 3)])
def test_next_controller_goes_on_whenever_the_last_one_dies(protocol: str, target: tuple[int, ...]) -> None:
    """
    V3 F stops the old replicas before it writes the assignment: a death between the two would leave neither.

    Source:  Kafka Replication Design V3, D 7.
    """
    moved, deaths = 0, 0
    for things in range(1, 200):
        cluster = cluster_of(protocol, bench=Mortal)
        controller = cluster.benches[5]
        assert isinstance(controller, Mortal)
        controller.left = things
        wanted = WantedReplicas(tp=TP, replicas=target)
        cluster.ask(5, AlterReassignmentsRequest(partitions=(wanted,), timeout_ms=1_000))
        cluster.pass_ms(2 * CHECK_MS)
        if controller.left > 0:
            break
        deaths += 1
        cluster.crash(5)
        cluster.pass_ms(3 * CHECK_MS)
        goes = node(cluster).replicas[0] == target
        moved += goes
        is_moved(cluster, *(target if goes else (1, 2)))
        assert [RECORDS] == [result.base_offset for result in cluster.produce(cluster.state().leader, 1)]
    assert moved >= 5 and deaths > moved > deaths - 5, (
        "it dies before the request is written, and everywhere after"
    )


@pytest.mark.parametrize("dies", [1, 2, 3, 4])
def test_move_goes_on_whichever_replica_dies_and_comes_back(dies: int) -> None:
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(CHECK_MS)
    cluster.crash(dies)
    cluster.release()
    cluster.pass_ms(CHECK_MS)
    cluster.start(dies)
    cluster.pass_ms(12 * CHECK_MS)
    is_moved(cluster, 3, 4)


# --- commands that are late or lost ---------------------------------------------------------------------------
def test_late_copy_of_a_stop_leaves_a_replica_that_is_assigned_again() -> None:
    """KIP-570: StopReplica names the epoch in which the replica was given up."""
    cluster = cluster_of()
    assert OK is alter(cluster, 1, 3)
    cluster.pass_ms(2 * CHECK_MS)
    stops = [send.request for send in cluster.benches[5].sent() if isinstance(send.request, StopReplicaRequest)]
    assert OK is alter(cluster, 1, 2)
    cluster.pass_ms(2 * CHECK_MS)
    is_moved(cluster, 1, 2)
    cluster.ask(2, stops[-1])
    is_moved(cluster, 1, 2)


@pytest.mark.parametrize("protocol", ["hw", "kip380"])
def test_broker_that_was_away_gives_up_its_replica_when_it_is_back(protocol: str) -> None:
    """Its process lives on, and reads nothing by itself (V3 E)."""
    cluster = cluster_of(protocol)
    leave(cluster, 2)
    assert OK is alter(cluster, 1, 3)
    cluster.pass_ms(2 * CHECK_MS)
    assert [1, 2, 3] == holders(cluster)
    come_back(cluster, 2)
    cluster.pass_ms(CHECK_MS)
    is_moved(cluster, 1, 3)


class Slow(Bench):
    """A broker that starts to read its topics, and is not answered until the test says so."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.hold(BROKER_TOPICS)


def test_stop_that_comes_before_a_broker_has_read_zookeeper_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only its own reading shows whether the replica is assigned to it again, in a later epoch."""
    cluster = cluster_of()
    state = cluster.state()
    stop = StopReplica(tp=TP, leader_epoch=state.leader_epoch, topic_id=state.topic_id)
    cluster.crash(2)
    monkeypatch.setattr(cluster, "_bench", Slow)
    bench = cluster.start(2)
    request = StopReplicaRequest(controller_id=5, controller_epoch=1, ack_timeout_ms=1, partitions=(stop,))
    assert [] == cluster.ask(2, request)
    bench.release()
    cluster.pass_ms(2 * CHECK_MS)
    assert [] == bench.made, "its log was deleted, and began anew"
    is_moved(cluster, 1, 2)


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("path", ["/brokers/topics/t", "/brokers/topics/t/0/leaderAndISR"])
def test_step_whose_answer_is_lost_is_told_or_done_again(path: str, happened: bool) -> None:
    cluster = cluster_of()
    cluster.benches[5].lose(path, happened=happened, writes=True)
    asked = alter(cluster, 3, 4)
    if asked is ErrorCode.REQUEST_TIMED_OUT and not happened:
        assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(4 * CHECK_MS)
    is_moved(cluster, 3, 4)


def test_command_of_a_step_names_the_replicas_before_and_after() -> None:
    cluster = cluster_of()
    before = cluster.state().leader_epoch
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(2 * CHECK_MS)
    told = {
        (command.leader_epoch, command.replicas)
        for send in cluster.benches[5].sent()
        if isinstance(send.request, LeaderAndIsrRequest)
        for command in send.request.partitions
        if command.leader_epoch > before
    }
    assert {(before + 1, (1, 2, 3, 4)), (before + 2, (3, 4))} == told


# --- the decision alone ---------------------------------------------------------------------------------------
def state_of(leader: int, *isr: int) -> PartitionState:
    return PartitionState(leader=leader, leader_epoch=7, isr=isr, controller_epoch=1, zk_version=4)


@pytest.mark.parametrize(
    ("move", "replicas", "state", "live", "expected"),
    [
        (((1, 2), (3, 4)), (1, 2), state_of(1, 1, 2), (1, 2, 3, 4), ((1, 2, 3, 4), 1, (1, 2))),
        (((1, 2), (3, 4)), (1, 2, 3, 4), state_of(1, 1, 2, 3), (1, 2, 3, 4), None),
        (((1, 2), (3, 4)), (1, 2, 3, 4), state_of(1, 1, 2, 3, 4), (1, 2, 3), None),
        (((1, 2), (3, 4)), (1, 2, 3, 4), state_of(1, 1, 3, 4), (1, 3, 4), ((3, 4), 3, (3, 4))),
        (((1, 2), (4, 1)), (1, 2, 4), state_of(1, 1, 2, 4), (1, 2, 4), ((4, 1), 1, (4, 1))),
        (((1, 2), (1, 2)), (1, 2, 3, 4), state_of(1, 1, 3), (1, 3, 4), ((1, 2), 1, (1,))),
        (((1, 2), (1, 2)), (1, 2, 3, 4), state_of(3, 3), (1, 3, 4), None),
    ],
)
def test_next_step_by_what_is_in_sync_and_alive(
    move: tuple[tuple[int, ...], tuple[int, ...]],
    replicas: tuple[int, ...],
    state: PartitionState,
    live: tuple[int, ...],
    expected: tuple[tuple[int, ...], int, tuple[int, ...]] | None,
) -> None:
    """V3 F, 2 and 3; a new leader epoch each time."""
    step = next_step(Move(origin=move[0], target=move[1]), replicas, state, live, may_begin=True)
    if expected is None:
        assert step is None
        return
    assert step is not None and 8 == step.decision.leader_epoch
    assert expected == (step.replicas, step.decision.leader, step.decision.isr)


def test_move_back_after_two_changes_of_mind_leaves_no_replica_of_the_first() -> None:
    """Cancelled is only what has added nobody: broker 3 was added by the first move, and goes (seed 201528)."""
    first, second = Move(origin=(1, 2), target=(3, 4)), Move(origin=(1, 2), target=(4, 5))
    back = WantedReplicas(tp=TP, replicas=(1, 2))
    for move, now, after in (
        (first, (1, 2), {}),
        (first, (1, 2, 3, 4), {0: Move(origin=(1, 2), target=(1, 2))}),
        (second, (1, 2, 3, 4), {0: Move(origin=(1, 2), target=(1, 2))}),
    ):
        moves = {0: move}
        assert (ErrorCode.NONE, "") == note(back, Assignment(replicas={0: now}, moves={0: move}), moves)
        assert after == moves


def test_partition_that_is_sent_on_and_then_back_has_its_old_replicas() -> None:
    cluster = cluster_of()
    cluster.hold(4, 1, FetchRequest)
    assert OK is alter(cluster, 3, 4)
    cluster.pass_ms(2 * CHECK_MS)
    leave(cluster, 4)
    for target in ((3,), (1, 2)):
        assert OK is alter(cluster, *target)
    cluster.release()
    cluster.pass_ms(4 * CHECK_MS)
    assert {0: (1, 2)} == node(cluster).replicas
