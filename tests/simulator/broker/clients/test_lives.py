"""A simulated client in a process of its own is killed because of what was seen, and goes on as another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events import ClientKilled, ClientStarted, Poll, Produce
from harness.history.memory import MemoryHistory
from harness.model import OpType, PreconditionError, UsageError, events_of
from harness.workload.lives import KILLED, OPS_LATER_MAX, end_of
from harness.workload.plan import Clients, ConsumerPlan, Place, ProducerPlan
from targets.broker.core.events import Hungup, Received
from targets.broker.core.messages import MetadataRequest, ProduceRequest
from targets.simulator.broker.clients.client import SimClient
from targets.simulator.broker.clients.lives import START_NS
from targets.simulator.broker.clients.workload import SimWorkload
from targets.simulator.broker.storage.records import content_of
from targets.simulator.engine.clock import NS_PER_MS
from tests.simulator.worlds import TOPIC, WAIT_S, Steps, cluster

PLACE = Place(TOPIC, 0)
NEVER = (10_000, 10_000)
PRODUCER = ProducerPlan(name="p1", places=(PLACE,), every_ms=(1, 2), kill_after=NEVER)
CONSUMER = ConsumerPlan(name="c1", places=(PLACE,), every_ms=(1, 2), kill_after=NEVER)


class Stage:
    """A world with clients at work, and its history."""

    def __init__(self, clients: Clients, seed: int = 1) -> None:
        self.world = cluster("kip380")
        self.history = MemoryHistory(Path("history"))
        self.history.keep_time_by(lambda: self.world.clock.now_ns)
        self.world.record_into(self.history)
        client = SimClient(self.world, self.history.listeners)
        self.workload: SimWorkload = client.begin_workload(clients, seed, nodes={})

    @property
    def killed(self) -> list[str]:
        """The clients in the order in which they were killed."""
        return [each.name for op, each in events_of(self.history.ops, ClientKilled) if op.type is OpType.OK]

    def records(self, type_: OpType) -> list[Produce]:
        return [sent for op, sent in events_of(self.history.ops, Produce) if op.type is type_]


def sent_to(steps: Steps) -> list[str]:
    """Return the values that a node received from producers."""
    asked = [event.request for event in steps.of(Received) if isinstance(event.request, ProduceRequest)]
    batches = [batch for request in asked for part in request.partitions for batch in part.batches]
    return [value for batch in batches for _, _, value in content_of(batch.payload).records]


def test_what_a_killed_process_had_sent_arrives_and_its_answer_does_not() -> None:
    stage = Stage(Clients(producers=(PRODUCER,)))
    steps = Steps(stage.world, "A")
    said = stage.workload.crash()
    assert said.startswith("p1 as client-1: pid ")
    assert said.endswith(" ms of virtual time, 1 of its ops open")
    ((cut, killed),) = [(op.index, sent) for op, sent in events_of(stage.history.ops, Produce) if sent.error]
    assert ("p1.1.0", KILLED, "") == (killed.value, killed.error, killed.digest)
    assert [] == sent_to(steps)
    stage.world.run(START_NS / 2 / 1e9)
    assert ["p1.1.0"] == sent_to(steps)
    assert 1 == len(steps.of(Hungup))
    assert {"client-killed", "client-started"} == {
        op.f for op in stage.history.ops if op.index > cut and op.process.startswith("client")
    }


def test_next_process_takes_time_to_start_and_must_ask_who_leads() -> None:
    stage = Stage(Clients(producers=(PRODUCER,)))
    stage.workload.crash()
    steps = [Steps(stage.world, name) for name in stage.world.nodes]
    assert stage.world.until(lambda: len(stage.records(OpType.OK)) > 0, WAIT_S)
    started = next(op for op, life in events_of(stage.history.ops, ClientStarted) if life.after)
    asked = next(op for op, sent in events_of(stage.history.ops, Produce) if sent.value == "p1.2.0")
    assert START_NS <= asked.time_ns - started.time_ns < START_NS + 10 * NS_PER_MS
    requests = [event.request for each in steps for event in each.of(Received)]
    assert 1 == sum(isinstance(request, MetadataRequest) for request in requests)


def test_each_crash_is_of_the_client_that_was_killed_least_often_the_first_by_name() -> None:
    other = ProducerPlan(name="p2", places=(PLACE,), every_ms=(1, 2))
    stage = Stage(Clients(producers=(PRODUCER, other), consumers=(CONSUMER,)))
    for _ in range(5):
        stage.workload.crash()
    assert ["c1", "p1", "c1", "p1", "c1"] == stage.killed
    assert 5 == stage.workload.kills


def test_kill_follows_from_what_was_seen_within_so_many_ops() -> None:
    producer = ProducerPlan(name="p1", places=(PLACE,), every_ms=(1, 2), batch=(1, 1), kill_after=(3, 3))
    stage = Stage(Clients(producers=(producer,)))
    assert stage.world.until(lambda: stage.workload.kills == 3, WAIT_S)
    ops = stage.history.ops
    for killed in [op for op, _ in events_of(ops, ClientKilled) if op.type is OpType.INVOKE]:
        mine = [op for op, _ in events_of(ops, Produce) if op.process == killed.process]
        acked = [op for op in mine if op.type is OpType.OK]
        assert len(acked) >= 3
        (due, *_) = [op for op in mine if op.type is OpType.INVOKE and op.index > acked[2].index]
        # Ops of one moment come together: the kill is behind all of them.
        assert due.index < killed.index
        later = [op for op in ops if due.index < op.index < killed.index and op.time_ns < killed.time_ns]
        assert len(later) <= OPS_LATER_MAX
    assert len({sent.value for sent in stage.records(OpType.INVOKE)}) == len(stage.records(OpType.INVOKE))


def test_consumer_goes_on_where_it_had_recorded_its_reading_to_end() -> None:
    writes = ProducerPlan(name="p1", places=(PLACE,), every_ms=(1, 2))
    reads = ConsumerPlan(name="c1", places=(PLACE,), every_ms=(1, 2), kill_after=(1, 2))
    stage = Stage(Clients(producers=(writes,), consumers=(reads,)))
    assert stage.world.until(lambda: stage.workload.kills == 4, WAIT_S)
    ops = list(stage.history.ops)
    # The last one has only just been started.
    for op, life in [(op, life) for op, life in events_of(ops, ClientStarted) if life.after][:-1]:
        before = [poll for other, poll in events_of(ops, Poll) if other.process == life.after][-1]
        (first, *_) = [poll for other, poll in events_of(ops, Poll) if other.process == op.process]
        assert life.positions == {str(PLACE): end_of(before)}
        assert (end_of(before), True) == (first.position, first.sought)


def test_client_that_is_to_end_is_not_killed_any_more() -> None:
    stage = Stage(Clients(producers=(PRODUCER,), consumers=(CONSUMER,)))
    stage.workload.stop()
    with pytest.raises(PreconditionError, match="client c1: no request within 10 s; expected one to kill it by"):
        stage.workload.crash()
    assert stage.workload.done
    assert 0 == stage.workload.kills


def test_clients_without_processes_of_their_own_are_not_killed() -> None:
    stage = Stage(Clients(producers=(ProducerPlan(name="p1", places=(PLACE,)),)))
    with pytest.raises(PreconditionError, match="no client has a process of its own; expected one at work"):
        stage.workload.crash()


def test_clients_that_are_killed_need_a_history() -> None:
    client = SimClient(cluster())
    with pytest.raises(UsageError, match=r"clients p1: kill_after=…; expected a run with a history"):
        client.begin_workload(Clients(producers=(PRODUCER,)), 1, nodes={})
