"""Runs on machines over SSH end as they do elsewhere; one whose machine is lost is unknown, and ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from harness import limits
from harness.cleanup.process import until
from harness.environment.real import RealEnvironment
from harness.events import Injection
from harness.history.file import read_history
from harness.hosts import HOSTS
from harness.launch import Address
from harness.model import OpType, Verdict, events_of
from harness.run.player import Player
from harness.run.result import RunResult, Status
from harness.run.spec import RunSpec
from harness.run.store import create_suite
from harness.scenario.file import draw
from harness.scenario.variant import Variant
from harness.suite.judged import judge_run
from harness.suite.scenario_files import read_scenario
from harness.target.found import target as target_of
from harness.target.target import Target
from tests.faults import NEMESES
from tests.hosts.sshds import Sshd, is_clean, write_list
from tests.kept import exhaustive
from tests.services import shared
from tests.suite.cells import spec_of

pytestmark = pytest.mark.slow

TARGET: Final[Target] = target_of("broker")
SEED: Final = 11
# Each fault that real machines have, one after another.
EVERY_FAULT: Final = """\
title    Every fault, one after another
source   the table of faults
nodes    A B replicas, C controller
records  m1 1..4, m2 1..3, m3 1..3, m4 1..3

produce m1 acks=all
await checkpoint A = end(m1)
await checkpoint B = end(m1)
flush A B
pause B
resume B
elect B
await leader = B
await isr = A B
elect A
await leader = A
await isr = A B

stop B
await isr = A
produce m2 acks=all
power-loss B
restart B
await isr = A B

zombie B
await isr = A
return B
await isr = A B
produce m3 acks=all
await checkpoint B = end(m3)

kill B
expire B
delete-active-segment B
restart B
await isr = A B
await log B = end(m3)

partition-isolate B
reconnect B
partition-one-way B
reconnect B
partition-brokers B
reconnect B
jam B
reconnect B
slow-link B
reconnect B
lossy-link B
reconnect B
cut-from-metadata B
zookeeper-back B
await isr = A B

zookeeper-outage A
zookeeper-back A

depose-controller C
produce m4 acks=all

expect kip380: none
"""


def environment(machines: list[Sshd], folder: Path, zookeeper: Address) -> RealEnvironment:
    make_host = partial(HOSTS["ssh"], machines=write_list(folder / "hosts.toml", machines))
    return RealEnvironment(
        "ssh", make_host=make_host, target=TARGET, power_tier="watermark", shared=shared(zookeeper)
    )


def of_text(path: Path, text: str) -> RunSpec:
    """Return the spec of a scenario that stands in no file of ours."""
    path.write_text(text)
    scenario = read_scenario(path)
    return RunSpec(
        target=TARGET.name,
        host="ssh",
        variant=Variant(protocol="kip380"),
        rules=TARGET.rules("kip380", ()),
        traits=TARGET.traits("kip380", ()),
        scenario=scenario,
        draw=draw(scenario, SEED),
    )


@exhaustive
def test_losses_of_kip101_show_under_the_old_protocol_and_every_fault_bites(
    tmp_path: Path, machines: list[Sshd], zookeeper: Address
) -> None:
    """Source: KIP-101, Scenarios 1 and 2."""
    player = Player(environment=environment(machines, tmp_path, zookeeper), faults=NEMESES)
    folder = create_suite(tmp_path, "over-ssh")
    specs = [
        spec_of(scenario, Variant(protocol=protocol), TARGET, SEED, host="ssh")
        for scenario in ("kip101-1", "kip101-2")
        for protocol in ("hw", "kip101")
    ]
    specs.append(of_text(tmp_path / "every-fault.txt", EVERY_FAULT))

    def play(spec: RunSpec) -> RunResult:
        run = player.attempt(spec, folder)
        return judge_run(spec, run)[0]

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(play, specs))
    assert [""] * 5 == [result.reason for result in results]
    assert [Status.AS_EXPECTED] * 5 == [result.status for result in results]
    ops = read_history(folder.run(specs[-1].name).history)
    bitten = {event.name for op, event in events_of(ops, Injection) if op.type is OpType.OK}
    # Of the others, halves and rings are the same cuts, what is of ZooKeeper is not of machines, and some undo
    # what needs more than every machine has.
    left = {
        "partition-halves",
        "partition-ring",
        "zookeeper-late",
        "zookeeper-multi-lost",
        "mend-disk",
        "clock-right",
        "pass-packets",
    }
    assert {name for name, fault in NEMESES.items() if not fault.needs} - left <= bitten
    assert "zookeeper-outage" in bitten
    assert [True] * 3 == [is_clean(each) for each in machines]


def test_run_whose_machine_is_lost_is_unknown_and_names_it_and_the_others_are_healed(
    tmp_path: Path, machines: list[Sshd], zookeeper: Address
) -> None:
    player = Player(environment=environment(machines, tmp_path, zookeeper), faults=NEMESES)
    spec = spec_of("kip101-1", Variant(protocol="kip101"), TARGET, SEED, host="ssh")
    lost = machines[1]

    def on_step(text: str) -> None:
        if text.startswith("produce m2"):
            lost.kill()

    try:
        run = player.attempt(spec, create_suite(tmp_path, "over-ssh-lost"), on_step)
        result, _ = judge_run(spec, run)
        assert (Status.UNKNOWN, Verdict.UNKNOWN) == (result.status, result.verdict)
        assert (
            f"machine m2 ({lost.user}@{lost.address}:{lost.port}): lost: the connection has ended" in run.failure
        )
        assert until(lambda: all(map(is_clean, machines)), limits.CONDITION_WAIT_S_MAX)
    finally:
        lost.start()
