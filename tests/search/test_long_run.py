"""A long run: what its host lacks is no part of it, its line counts what happened, and its steps play again."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from harness.ability import Ability
from harness.events import Injection, MetadataState, Produce
from harness.model import Op, OpType, UsageError, Verdict
from harness.random_schedule.chaos import LINK_MOVES
from harness.run.environment import Environment
from harness.run.store import create_suite
from harness.search.chaos_line import PRINTED_NS, ChaosLine
from harness.search.long_run import possible
from harness.search.random_runs import RandomRuns
from harness.search.real_runs import open_players, play_real
from harness.search.simulated import sim_player, simulate
from targets.broker_target.target import TARGET
from tests.faults import NEMESES
from tests.needs import needs

POOR = cast(
    Environment,
    type(
        "Poor",
        (),
        {"name": "poor", "lacks": lambda _, ability: "no luck" if ability is Ability.DISK_FULL else ""},
    )(),
)
ACKNOWLEDGED = Produce(topic="log", partition=0, name="m1", value="m1.0", acks=-1, codec="none", offset=0)


def test_what_the_host_lacks_is_named_with_its_reason_and_left_out() -> None:
    kinds, lacking = possible(("all",), POOR, NEMESES)
    need = {name for name, fault in NEMESES.items() if Ability.DISK_FULL in fault.needs}
    assert dict.fromkeys(need, "no luck") == lacking
    assert {"kill", *LINK_MOVES} < set(kinds)
    assert not need & set(kinds)


def test_fault_that_was_chosen_and_is_not_possible_is_refused() -> None:
    with pytest.raises(UsageError, match="fault disk-full: no luck"):
        possible(("kill", "disk-full"), POOR, NEMESES)
    with pytest.raises(UsageError, match="it can inject none of hold; expected one at least"):
        possible(("hold",), POOR, NEMESES)


def test_line_counts_faults_in_force_elections_and_acknowledgements() -> None:
    out = io.StringIO()
    spec = RandomRuns(target="broker", variant="kip380", host="sim", seconds=200.0).spec(1)
    line = ChaosLine(Console(file=out, width=200), spec)
    events = [
        (
            "zookeeper",
            OpType.INFO,
            MetadataState(topic="log", partition=0, leader="A", epoch=0, isr=("A",), version=0),
        ),
        (
            "zookeeper",
            OpType.INFO,
            MetadataState(topic="log", partition=0, leader="B", epoch=1, isr=("B",), version=1),
        ),
        (
            "c",
            OpType.OK,
            Produce(topic="log", partition=0, name="m1", value="m1.0", acks=-1, codec="none", offset=0),
        ),
        ("nemesis", OpType.OK, Injection(name="pause", nodes=("A",), effect="paused", band="paused")),
        ("nemesis", OpType.OK, Injection(name="kill", nodes=("B", "C"), effect="down", band="down")),
        (
            "nemesis",
            OpType.OK,
            Injection(name="restart", nodes=("B",), effect="none", heals=("down",), band="mark"),
        ),
    ]
    for number, (process, type_, event) in enumerate(events):
        now = 0 if number + 1 < len(events) else PRINTED_NS
        line.listen(Op.of(event, index=number, time_ns=now, process=process, type=type_))
    assert out.getvalue() == (
        "60 s: 0 ops/s, 0 acked/s of 1, 3 faults bit, in force kill:C pause:A, 1 elections, no violation so far, "
        "140 s left\n"
    )


@pytest.mark.slow
@needs("java")
def test_chaos_on_processes_ends_whole_and_its_executed_steps_play_again(tmp_path: Path) -> None:
    runs = RandomRuns(target="broker", variant="kip380", host="local", nemeses=("kill", "elect"), seconds=4.0)
    suite, notes = create_suite(tmp_path, "chaos"), list[str]()
    with open_players({"one": runs}, ports=None, folder=suite.path / "zookeeper", note=notes.append) as players:
        run, result = play_real(players["one"], runs.spec(3), suite)
    assert (Verdict.VALID, []) == (result.verdict, notes), result.sentences
    assert result.activity.bit["kill"] > 0
    steps = run.executed.read_text(encoding="utf-8").splitlines()
    assert {"settle", "produce m1 acks=all"} <= set(steps)
    again = replace(runs, host="sim", seconds=None, nemeses=("all",), schedule=run.executed).spec(3)
    assert Verdict.VALID is simulate(sim_player(TARGET), again).verdict
