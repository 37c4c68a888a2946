"""A client of the workload is killed in mid-flight and another process goes on for it; nothing else is touched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from checkers.judge import judge
from harness.environment.real import RealEnvironment
from harness.events import ClientKilled, ClientStarted, Injection
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import Op, OpType, UsageError, events_of
from harness.run.player import Player
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.file import draw, parse
from harness.scenario.variant import Variant
from harness.suite.environments import require_abilities
from harness.workload.plan import Clients, ConsumerPlan, Library, Place, ProducerPlan
from nemesis import NEMESES, client_crash
from targets.broker_target import TARGET
from targets.simulator.environment import SimEnvironment
from tests.nemesis.simulated import played as simulated
from tests.nemesis.simulated import refused

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
        scenario=scenario,
        draw=draw(scenario, 7),
    )
    run = create_suite(folder, folder.name).create_run("client-crash")
    environment = RealEnvironment("local", make_host=HOSTS["local"], target=TARGET, zookeeper=zookeeper)
    Player(environment=environment, faults=NEMESES).play(spec, run)
    ops = read_history(run.history)
    return judge(spec, ops), ops


@pytest.mark.slow
def test_each_client_is_killed_once_and_goes_on_as_another_process(tmp_path: Path, zookeeper: Address) -> None:
    result, ops = played(zookeeper, tmp_path)
    assert ("as expected", "") == (result.status, result.reason)
    probes = [each.probe or "" for op, each in events_of(ops, Injection) if op.type is OpType.OK]
    assert ["c1", "p1"] == [probe.partition(" as ")[0] for probe in probes]
    assert all(" ended by SIGKILL, waited for: signal 9, " in probe for probe in probes)
    killed = {op.process: each.name for op, each in events_of(ops, ClientKilled) if op.type is OpType.OK}
    assert {"c1", "p1"} == set(killed.values())
    after = [each for _, each in events_of(ops, ClientStarted) if each.after]
    assert killed == {each.after: each.name for each in after}


def test_simulator_refuses_it_with_the_reason() -> None:
    with pytest.raises(UsageError, match="fault client-crash: host sim: its clients are no processes; expected"):
        require_abilities(SimEnvironment("sim", TARGET), NEMESES, ["client-crash"])


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
