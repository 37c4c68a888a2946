"""A client of the workload is killed in mid-flight and another process goes on for it; nothing else is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.judge import judge
from harness.environment.real import RealEnvironment
from harness.events import ClientKilled, ClientStarted, Event, Injection, Poll, Produce, Read
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import Op, OpType, Verdict, events_of
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.file import draw, parse
from harness.scenario.variant import Variant
from harness.workload.lives import KILLED
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan
from nemesis import client_crash
from targets.broker_target.target import TARGET
from tests.faults import NEMESES
from tests.nemesis.every_fault import pretending
from tests.nemesis.simulated import played as simulated
from tests.nemesis.simulated import refused, spec_of
from tests.services import shared

SCHEDULE = """
title    Clients are killed while they work
source   this test
nodes    B A replicas, C controller
records  m1 1, m2 1
producer p1 log-0 acks=all
consumer c1 log-0

produce m1 acks=all
client-crash B
client-crash B
client-crash B
client-crash B
produce m2 acks=all

expect kip380: none
"""


def played(zookeeper: Address, folder: Path) -> tuple[RunResult, Sequence[Op]]:
    scenario = parse("client-crash", SCHEDULE, "this test", NEMESES)
    spec = RunSpec(
        target=TARGET.name,
        host="local",
        variant=Variant(protocol="kip380"),
        rules=TARGET.rules("kip380", ()),
        traits=TARGET.traits("kip380", ()),
        scenario=scenario,
        draw=draw(scenario, 7),
    )
    run = create_suite(folder, folder.name).create_run("client-crash")
    environment = RealEnvironment("local", make_host=HOSTS["local"], target=TARGET, shared=shared(zookeeper))
    Player(environment=environment, faults=NEMESES).play(spec, run)
    ops = read_history(run.history)
    return judge(spec, ops), ops


@pytest.mark.slow
def test_each_client_is_killed_in_turn_and_goes_on_as_another_process(tmp_path: Path, zookeeper: Address) -> None:
    result, ops = played(zookeeper, tmp_path)
    assert ("as expected", "") == (result.status, result.reason)
    probes = [each.probe or "" for op, each in events_of(ops, Injection) if op.type is OpType.OK]
    assert ["c1", "p1", "c1", "p1"] == [probe.partition(" as ")[0] for probe in probes]
    assert all(" ended by SIGKILL, waited for: signal 9, " in probe for probe in probes)
    killed = [(op.process, each.name) for op, each in events_of(ops, ClientKilled) if op.type is OpType.OK]
    assert ["c1", "p1"] * 2 == [name for _, name in killed]
    after = {each.after: each.name for _, each in events_of(ops, ClientStarted) if each.after}
    # Who was killed twice went on after the first time; after the last one the run may be over too soon for that.
    assert dict(killed[:2]).items() <= after.items() <= dict(killed).items()


# --- in the simulator -------------------------------------------------------------------------------------------
PRODUCER = "producer p1 log-0 acks=all"
BOTH = f"{PRODUCER}\nconsumer c1 log-0"
TWICE = "produce m1 acks=all\nclient-crash B\nclient-crash B\npass 300ms\nproduce m2 acks=all\n"
# While its leader is down a producer begins what it cannot send.
UNSENT = """produce m1 acks=all
kill A
client-crash B
expire A
await leader = B
restart A
await isr = A B
produce m2 acks=all
"""


def cut_off(ops: Sequence[Op]) -> list[tuple[int, Produce]]:
    """Return the index and the record of each produce that a kill has cut off."""
    return [(op.index, sent) for op, sent in events_of(ops, Produce) if sent.error == KILLED]


def stored(ops: Sequence[Op]) -> dict[str, int]:
    """Return the offset of each record that the final read has."""
    return {value: offset for _, read in events_of(ops, Read) for offset, value in read.records or ()}


def changed(op: Op, event: Event, type_: OpType | None = None) -> Op:
    """Return an op of another event, with all else as it was."""
    return Op.of(event, index=op.index, time_ns=op.time_ns, process=op.process, type=type_ or op.type)


def with_record(op: Op, at: int, value: str) -> Op:
    """Return a poll that brought this record at its offset, if it brought one from there."""
    poll = op.event
    if not isinstance(poll, Poll) or at not in dict(poll.records or ()):
        return op
    return changed(op, replace(poll, records=tuple(({**dict(poll.records or ()), at: value}).items())))


def test_simulated_clients_are_killed_in_turn_and_go_on_as_other_processes() -> None:
    result, ops = simulated("twice", TWICE, head=BOTH)
    assert ("as expected", "") == (result.status, result.reason)
    probes = [each.probe or "" for op, each in events_of(ops, Injection) if op.type is OpType.OK]
    assert ["c1", "p1"] == [probe.partition(" as ")[0] for probe in probes]
    told = [(op.process, op.type, each) for op, each in events_of(ops, ClientKilled)]
    assert [OpType.INVOKE, OpType.OK] * 2 == [type_ for _, type_, _ in told]
    killed = {process: each.name for process, _, each in told}
    after = [(op.process, each) for op, each in events_of(ops, ClientStarted) if each.after]
    assert killed == {each.after: each.name for _, each in after}
    # Nothing is of a process after its end, and each that goes on works.
    for process in killed:
        (*_, last) = [op for op in ops if op.process == process]
        assert ("client-killed", OpType.OK) == (last.f, last.type)
    assert {process for process, _ in after} <= {op.process for op in ops if op.type is OpType.OK}


def test_simulated_crash_is_the_same_history_every_time() -> None:
    (_, one), (_, other) = (simulated("twice", TWICE, head=BOTH) for _ in range(2))
    assert [op.to_json() for op in one] == [op.to_json() for op in other]


def test_simulated_crash_that_is_only_pretended_is_refused() -> None:
    with pretending("client-crash"):
        result, ops = simulated("twice", TWICE, head=BOTH)
    assert "client-crash B: no client was killed; expected one (done)" == refused(ops, "client-crash")
    assert Verdict.UNKNOWN is result.verdict


def test_simulated_client_that_asks_for_nothing_is_not_killed() -> None:
    steps = "produce m1 acks=all\nkill A\nclient-crash B\nrestart A\n"
    _, ops = simulated("idle", steps, head="consumer c1 log-0")
    assert "client c1: no request within 10 s; expected one to kill it by" == refused(ops, "client-crash")


def test_record_of_a_producer_that_crashed_may_be_there() -> None:
    result, ops = simulated("twice", TWICE, head=BOTH)
    ((_, sent),) = cut_off(ops)
    assert sent.value in stored(ops)
    assert Verdict.VALID is result.verdict
    # Whoever has read it has read what the log has: another record in its place is seen.
    at, spec = stored(ops)[sent.value], spec_of("twice", TWICE, head=BOTH)
    assert Verdict.VALID is judge(spec, ops).verdict
    false = [with_record(op, at, "m1.0") for op in ops]
    assert false != ops, "expected a consumer that has read it"
    assert Verdict.INVALID is judge(spec, false).verdict


def test_record_of_a_producer_that_crashed_may_be_nowhere_unless_it_was_acknowledged() -> None:
    result, ops = simulated("unsent", UNSENT, head=PRODUCER)
    ((index, sent),) = cut_off(ops)
    assert sent.value not in stored(ops)
    assert Verdict.VALID is result.verdict
    told = replace(sent, error="", offset=max(stored(ops).values()) + 1)
    false = [changed(op, told, OpType.OK) if op.index == index else op for op in ops]
    assert Verdict.INVALID is judge(spec_of("unsent", UNSENT, head=PRODUCER), false).verdict


def test_run_without_clients_at_work_refuses_it() -> None:
    _, ops = simulated("client-crash", "produce m1 acks=all\nclient-crash A\n")
    expected = "client-crash A: the run has no workload; expected clients at work"
    assert expected == refused(ops, client_crash.FAULT.name)


def test_clients_are_killable_but_for_those_of_a_library_that_is_a_process_already() -> None:
    log = (Place("log", 0),)
    clients = Clients(
        producers=(
            ProducerPlan(name="p1", places=log),
            ProducerPlan(name="p2", places=log, kill_after=(1, 2)),
            ProducerPlan(name="p3", places=log, client=Library.JAVA),
        ),
        consumers=(ConsumerPlan(name="c1", places=log),),
    )
    assert ("p1", "p2", "c1") == clients.killable().killed
    assert (1, 2) == clients.killable().producers[1].kill_after
