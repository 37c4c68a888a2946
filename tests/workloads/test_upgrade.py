"""Workload upgrade: every broker takes every version while clients work, and a broken upgrade is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from checkers.judge import judge
from harness.environment.real import RealEnvironment
from harness.events import Produce, Started
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import Op, OpType, Verdict, events_of
from harness.random_schedule.climb import NODES
from harness.run.player import Player
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.steps import Install, Settle
from harness.search.random_runs import RandomRuns
from harness.search.simulated import play_in_memory, sim_player
from targets import VIRTUAL_HOST as SIM
from targets.broker.core import fetches, leader, questions
from targets.broker.core.messages import ErrorCode
from targets.broker.core.state import Replica
from targets.broker_target.target import TARGET
from tests.faults import NEMESES
from tests.kept import exhaustive
from tests.services import shared

SEED: Final = 1
CLIENTS: Final = ("p1", "p2", "p3")
OWN: Final = "kip380"
LADDER: Final = (OWN, "kip380@kip101", "kip380@kip279", "kip380@kip320", OWN, "kip380@kip320", OWN)


def runs(host: str) -> RandomRuns:
    """Return runs of which nothing but pauses disturbs the steps."""
    return RandomRuns(target="broker", variant=OWN, host=host, workload="upgrade", nemeses=("pause",))


def climbed(ops: Sequence[Op], node: str) -> tuple[str, ...]:
    """Return the protocols that a broker's own processes named as they started, one after another."""
    named = (started.protocol for op, started in events_of(ops, Started) if op.process == node)
    return tuple(protocol for protocol, _ in groupby(named))


def acknowledged_under(ops: Sequence[Op], node: str) -> int:
    """Return under how many of these protocols a workload's client had a record acknowledged."""
    found, last = 0, -1
    for op in ops:
        if isinstance(op.event, Started) and op.process == node:
            last = op.index
        elif last >= 0 and op.type is OpType.OK and isinstance(op.event, Produce) and op.event.name in CLIENTS:
            found, last = found + 1, -1
    return found


@exhaustive
@pytest.mark.slow
def test_every_broker_takes_every_version_while_clients_write_and_nothing_is_wrong(
    tmp_path: Path, zookeeper: Address
) -> None:
    environment = RealEnvironment(
        "local", make_host=HOSTS["local"], target=TARGET, client="raw", shared=shared(zookeeper)
    )
    spec = runs("local").spec(SEED)
    run = create_suite(tmp_path, tmp_path.name).create_run("workload-upgrade")
    Player(environment=environment, faults=NEMESES).play(spec, run)
    ops = read_history(run.history)
    result = judge(spec, ops)
    assert result.verdict <= Verdict.PERMITTED, result.sentences
    assert dict.fromkeys(NODES, LADDER) == {node: climbed(ops, node) for node in NODES}
    assert all(acknowledged_under(ops, node) >= len(LADDER) for node in NODES)


def refuse_without_epoch(replica: Replica, current: int) -> ErrorCode:
    """Fence as if every broker spoke KIP-320: also a request that has no epoch."""
    return ErrorCode.NONE if current == replica.leader_epoch else ErrorCode.FENCED_LEADER_EPOCH


def first_of(spec: RunSpec, brokers: int) -> RunSpec:
    """Return the run with the steps that install so many brokers, and until the cluster is whole again."""
    steps = spec.scenario.steps
    at = [number for number, step in enumerate(steps) if isinstance(step.act, Install)][brokers - 1]
    whole = next(number for number, step in enumerate(steps) if number > at and step.act == Settle())
    return replace(spec, scenario=replace(spec.scenario, steps=steps[: whole + 1]))


def test_first_two_brokers_are_set_back_while_clients_write_and_nothing_is_wrong() -> None:
    result, ops = play_in_memory(sim_player(TARGET), first_of(runs(SIM).spec(SEED), 2))
    assert result.verdict <= Verdict.PERMITTED, result.sentences
    assert [LADDER[:1], LADDER[:1], LADDER[:2], LADDER[:2]] == sorted(climbed(ops, node) for node in NODES)


@exhaustive
@pytest.mark.slow
def test_broker_that_takes_all_others_for_upgraded_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: KIP-320, Compatibility: a request of an older version has no epoch, and is not fenced."""
    for module in (fetches, leader, questions):
        monkeypatch.setattr(module, "fence", refuse_without_epoch)
    assert Verdict.HANG is play_in_memory(sim_player(TARGET), first_of(runs(SIM).spec(SEED), 2))[0].verdict
