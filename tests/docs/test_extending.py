"""
The examples of docs/extending.md do what the page says: each is taken from the page and run.

That of a log reader is run by tests/logs/toy.py, for tests of all that reads logs.
"""

from __future__ import annotations

import json
import re
import socketserver
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from checkers.checker import Checker, check, partitions
from checkers.judge import judge
from harness.ability import Ability
from harness.docs.pages import ROOT
from harness.events import Batch, Event, Injection, MetadataState
from harness.history.file import History
from harness.history.memory import MemoryHistory
from harness.model import Kind, OpType, events_of
from harness.random_schedule.generate import draw_schedule
from harness.random_schedule.profile import DEFAULT
from harness.run.player import Player
from harness.run.result import Status
from harness.run.spec import RunSpec
from harness.scenario.file import Scenario, draw, parse
from harness.scenario.variant import Variant, Variants
from harness.target.clients import TargetClients
from harness.target.metadata import TargetRun
from harness.target.operator import requests_of
from targets.broker_target.target import TARGET
from targets.simulator.broker.environment import SimEnvironment
from tests.checkers.golden import ops_of
from tests.faults import NEMESES

KNOWN: Final = Variants(protocols=TARGET.protocols(), change=TARGET.rules)
PAGE: Final = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SCENARIO, FAULT_FILE, RULE_FILE, _, _, _, CLIENT_FILE, METADATA_FILE = re.findall(
    r"```(?:text|python)\n(.*?)```", PAGE, re.DOTALL
)


def executed(source: str, name: str) -> Any:
    """Execute a module's source and return the value of one of its names."""
    module: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, "docs/extending.md", "exec"), module)
    return module[name]


def spec_of(scenario: Scenario, protocol: str, *, nemeses: tuple[str, ...] = ()) -> RunSpec:
    return RunSpec(
        target=TARGET.name,
        host="sim",
        variant=Variant(protocol=protocol),
        rules=TARGET.rules(protocol, ()),
        traits=TARGET.traits(protocol, ()),
        scenario=scenario,
        draw=draw(scenario, 7),
        nemeses=nemeses,
    )


def played(spec: RunSpec, faults: Any = NEMESES) -> MemoryHistory:
    history = MemoryHistory(Path(spec.name))
    Player(environment=SimEnvironment("sim", TARGET), faults=faults).play_into(history, spec, Path())
    return history


@pytest.mark.parametrize("protocol", ["hw", "kip101", "kip380"])
def test_scenario_of_the_page_comes_out_as_it_expects(protocol: str) -> None:
    scenario = parse("example", SCENARIO, "docs/extending.md", NEMESES, KNOWN)
    spec = spec_of(scenario, protocol)
    result = judge(spec, played(spec).ops)
    assert (Status.AS_EXPECTED, "none") == (result.status, result.found), result.reason


def test_fault_of_the_page_is_a_word_of_scenarios_and_drawn_by_random_schedules() -> None:
    fault = executed(FAULT_FILE, "FAULT")
    faults = {**NEMESES, fault.name: fault}
    text = SCENARIO.replace("kill A", "oom A")
    spec = spec_of(parse("example", text, "docs/extending.md", faults, KNOWN), "kip380")
    history = played(spec, faults)
    assert Status.AS_EXPECTED is judge(spec, history.ops).status
    bitten = [
        op for op, event in events_of(history.ops, Injection) if event.name == "oom" and op.type is OpType.OK
    ]
    assert 1 == len(bitten)
    often = {**NEMESES, "oom": replace(fault, weight=20.0)}
    schedules = [draw_schedule(seed, often, replace(DEFAULT, tempers=(1.0,))) for seed in range(5)]
    assert any(step.text.startswith("oom ") for schedule in schedules for step in schedule.steps)


def test_checker_of_the_page_finds_what_is_planted_and_nothing_else() -> None:
    rule = executed(RULE_FILE, "repeated")
    checker = Checker(name="repeated", needs=(), rule=rule, doc="", source="")
    ops = ops_of("diverged-ok")

    def found() -> list[tuple[Kind, tuple[tuple[int, int], ...]]]:
        parts = partitions(ops).values()
        return [(a.kind, a.ranges) for part in parts for a in check(part, {"repeated": checker})]

    assert [] == found()
    at, batch = next((op.index, event) for op, event in events_of(ops, Batch) if len(event.records) > 1)
    first, second, *rest = batch.records
    twice = replace(batch, records=(first, (second[0], second[1], first[2]), *rest))
    ops[at] = type(ops[at]).of(
        twice, index=at, time_ns=ops[at].time_ns, process=ops[at].process, type=ops[at].type
    )
    assert [(Kind.DISORDER, ((first[0], first[0] + 1), (second[0], second[0] + 1)))] == found()


class Node(socketserver.StreamRequestHandler):
    """A node of a log that answers the questions of the page; only a leader does what it is asked."""

    records: ClassVar[list[str]] = []
    leader: ClassVar[int] = 0

    def handle(self) -> None:
        question = json.loads(self.rfile.readline())
        self.wfile.write(json.dumps(self._answer(question)).encode() + b"\n")

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if self.server.server_address[1] != self.leader:
            return {"refused": "not the leader"}
        if "read" in question:
            return {"records": list(enumerate(self.records))[question["read"] :]}
        self.records.append(question["produce"])
        return {"offset": len(self.records) - 1}


def test_client_of_the_page_is_a_run_s_client(tmp_path: Path) -> None:
    clients: TargetClients = executed(CLIENT_FILE, "CLIENTS")
    with ExitStack() as stack:
        nodes = [stack.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Node, True)) for _ in "AB"]
        for node in nodes:
            threading.Thread(target=node.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(node.shutdown)
        ports = [node.server_address[1] for node in nodes]
        Node.leader = ports[1]
        history = stack.enter_context(History(tmp_path / "history.jsonl"))
        addresses = [f"127.0.0.1:{port}" for port in ports]
        client = clients.make(clients.own({}), history=history, bootstrap=lambda: addresses)
        assert [0, 1] == client.produce("log", 0, "m1", ["m1.0", "m1.1"], acks=-1)
        assert [(0, "m1.0"), (1, "m1.1")] == client.read_all("log", 0)
        assert all(clients.serves(address) for address in addresses)


def test_metadata_in_a_file_are_read_and_its_operator_is_asked_for_elections(tmp_path: Path) -> None:
    events: list[Event] = []
    run = TargetRun(target="mylog", ids={"A": 1, "B": 2}, folder=tmp_path, record=events.append, give_up=print)
    metadata = executed(METADATA_FILE, "metadata")(run)
    try:
        assert None is metadata.truth("log", 0)
        first = {"leader": "A", "epoch": 0, "in_sync": ["A", "B"], "members": {"A": 1, "B": 1}}
        (tmp_path / "meta.json").write_text(json.dumps(first), encoding="utf-8")
        metadata.watch([("log", 0)])
        made = executed(METADATA_FILE, "FileOperator")
        assert {Ability.ELECT} == requests_of(made)
        assert "B asked for, for log-0" == made(run).elect("log", 0, "B")
        now = metadata.truth("log", 0)
        assert ("B", 1, 1) == (now.leader, now.epoch, metadata.incarnation("A"))
    finally:
        metadata.close()
    leaders = [event.leader for event in events if isinstance(event, MetadataState)]
    assert ["A", "B"] == leaders
