"""Every fault is seen to bite and to end; one whose injection or heal does nothing makes the run unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from harness.ability import Ability
from harness.docs import evidence
from harness.docs.evidence import Cell
from harness.model import Op, Verdict
from harness.run.result import RunResult
from targets.broker_target.target import TARGET
from targets.simulator.broker.environment import SimEnvironment
from tests.faults import NEMESES
from tests.nemesis.every_fault import PRODUCE, SHOWN, SINGLY, Shown, pretending
from tests.nemesis.simulated import played, refused, seen

# Small segments, so that there is a closed one.
SETTINGS = "segment_bytes=150"
# A flush that can fail.
FLUSHING = {"flush-error": "flush_messages=1"}
ON_BOTH = ("produce m1 acks=all", "produce m2 acks=all")
BUSY = "produce m3 acks=1 meanwhile"
# What only bites clients that are at work all the time, as those of a workload are.
OF_CLIENTS = {Ability.CLIENT_LINKS, Ability.CLIENT_PROCESSES}


def steps_of(fault: str, shown: Shown) -> str:
    """Return the lines that set a fault up, inject it, undo it, and make the node whole again."""
    busy = (BUSY,) if shown.busy and not OF_CLIENTS.intersection(NEMESES[fault].needs) else ()
    undo = (f"{shown.undo} {shown.node}",) if shown.undo else ()
    bite = (*shown.before, *busy, f"{fault} {shown.node}", *shown.meanwhile, *undo)
    last = () if {BUSY, PRODUCE, SINGLY} & set(bite) else (PRODUCE,)
    lines = (*ON_BOTH, *bite, *shown.after, *last)
    return "\n".join(lines) + "\n"


def play(fault: str) -> tuple[RunResult, Sequence[Op]]:
    shown = SHOWN[fault]
    head = "producer p1 log-0 acks=all" if OF_CLIENTS.intersection(NEMESES[fault].needs) else ""
    return played(
        fault, steps_of(fault, shown), settings=f"{SETTINGS} {FLUSHING.get(fault, '')}".rstrip(), head=head
    )


def said(pattern: str, fault: str) -> str:
    """Return a pattern of the table for a fault."""
    return pattern.format(fault=fault, node=SHOWN[fault].node)


def test_table_has_a_line_for_every_fault() -> None:
    assert list(NEMESES) == list(SHOWN)
    for name, shown in SHOWN.items():
        heal = NEMESES[name].heal
        by = [other for other, fault in NEMESES.items() if heal is not None and fault.inject == heal]
        assert ([shown.undo] if shown.undo else []) == by, name


@pytest.mark.parametrize("fault", SHOWN)
def test_fault_is_seen_and_undone_and_the_run_is_valid(fault: str) -> None:
    shown = SHOWN[fault]
    result, ops = play(fault)
    assert "" == refused(ops, fault)
    assert re.search(shown.seen, seen(ops, fault)), seen(ops, fault)
    if shown.undo:
        assert "" == refused(ops, shown.undo)
        assert re.search(said(shown.undone, fault), seen(ops, shown.undo)), seen(ops, shown.undo)
    assert Verdict.VALID is result.verdict, result.anomalies


@pytest.mark.parametrize("fault", SHOWN, ids=[f"sim-{name}" for name in SHOWN])
def test_page_quotes_what_the_simulator_says(fault: str, request: pytest.FixtureRequest) -> None:
    _, ops = play(fault)
    cell = Cell(injected=seen(ops, fault), healed=seen(ops, SHOWN[fault].undo)).plain()
    if request.config.getoption("--write-evidence"):
        evidence.keep("sim", fault, cell, NEMESES)
    assert cell == evidence.read("sim")[fault], "expected what make evidence HOST=sim has kept"


@pytest.mark.parametrize("host", evidence.EVIDENCED)
def test_evidence_of_a_host_has_every_fault_played_and_healed_or_refused(host: str) -> None:
    cells = evidence.read(host)
    assert list(NEMESES) == list(cells)
    for name, cell in cells.items():
        assert bool(cell.refused) != bool(cell.injected), name
        assert bool(cell.healed) == (bool(SHOWN[name].undo) and not cell.refused), name
        assert cell == cell.plain(), f"{name}: expected no path of a machine"


@pytest.mark.parametrize("host", evidence.EVIDENCED)
def test_evidence_of_a_host_says_what_faults_say_today(host: str) -> None:
    """What a fault says changes with its code; what was kept of it before is then out of date."""
    for name, cell in evidence.read(host).items():
        if cell.refused:
            continue
        again = f"{host}: {name}: expected what make evidence HOST={host} would keep"
        assert re.search(SHOWN[name].seen, cell.injected), again
        assert not SHOWN[name].undo or re.search(said(SHOWN[name].undone, name), cell.healed), again


@pytest.mark.parametrize("fault", SHOWN)
def test_injection_that_is_only_pretended_makes_the_run_unknown(fault: str) -> None:
    with pretending(fault):
        result, ops = play(fault)
    assert re.match(said(SHOWN[fault].pretended, fault), refused(ops, fault)), refused(ops, fault)
    assert Verdict.UNKNOWN is result.verdict


@pytest.mark.parametrize("fault", [name for name in SHOWN if SHOWN[name].undo])
def test_heal_that_is_only_pretended_makes_the_run_unknown(fault: str) -> None:
    shown = SHOWN[fault]
    with pretending(shown.undo):
        result, ops = play(fault)
    assert re.match(said(shown.still, fault), refused(ops, shown.undo)), refused(ops, shown.undo)
    assert Verdict.UNKNOWN is result.verdict


def test_simulator_lacks_nothing() -> None:
    simulator = SimEnvironment("sim", TARGET)
    assert {""} == {simulator.lacks(ability) for ability in Ability}
