"""Which clocks a real node's process gets is decided by the faults of its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness import limits
from harness.ability import Ability
from harness.clocks import Which
from harness.environment.clocks import NodesClocks, asked
from harness.model import PreconditionError
from harness.scenario.file import Step
from harness.scenario.steps import Inject
from harness.target.target import Target
from targets.broker_target.target import TARGET
from targets.nats.target import TARGET as NATS
from tests.specs import cluster_spec

IDS = {"A": 1, "B": 2, "C": 3}


def clocks_of(*acts: Inject, nemeses: Sequence[str] = (), target: Target = TARGET) -> NodesClocks:
    spec = cluster_spec(TARGET, "kip380", IDS, ["A", "B"])
    steps = tuple(Step(line=line, act=act) for line, act in enumerate(acts, start=1))
    return NodesClocks(replace(spec, scenario=replace(spec.scenario, steps=steps), nemeses=tuple(nemeses)), target)


def at_start(clocks: NodesClocks) -> list[Which | None]:
    return [clocks.at_start(name) for name in IDS]


def test_run_without_a_clock_fault_has_the_machines_clocks() -> None:
    clocks = clocks_of(Inject("kill", ("A",)))
    assert [None, None, None] == at_start(clocks)
    assert "A was started with no clocks to set; expected wall" == clocks.unfit("A", Ability.WALL_CLOCK)


def test_nodes_that_print_no_clocks_have_the_machines_although_a_pause_may_be_drawn_with_a_wake() -> None:
    """Clocks of its own hang a process of Python: docs/clocks.md, traps of version 0.9.10."""
    clocks = clocks_of(Inject("pause", ("C",)), Inject("wake", ("C",)), nemeses=["pause"], target=NATS)
    assert [None, None, None] == at_start(clocks)


@pytest.mark.parametrize(
    ("fault", "which"), [("clock-back", Which.WALL), ("clock-slow", Which.BOTH), ("suspend", Which.BOTH)]
)
def test_all_nodes_have_the_clocks_that_the_only_kind_of_fault_needs(fault: str, which: Which) -> None:
    for clocks in (clocks_of(Inject(fault, ("A",))), clocks_of(nemeses=["kill", fault])):
        assert [which, which, which] == at_start(clocks)


def test_node_has_the_clocks_of_the_first_fault_that_is_named_for_it() -> None:
    clocks = clocks_of(Inject("clock-fast", ("B",)), Inject("clock-back", ("A", "B")))
    for _ in range(2):
        assert [Which.WALL, Which.BOTH] == at_start(clocks)[:2]


def test_nodes_have_either_kind_in_turns_if_faults_of_both_may_come() -> None:
    clocks = clocks_of(nemeses=["clock-fast", "clock-back"])
    first, second = at_start(clocks), at_start(clocks)
    assert {Which.WALL, Which.BOTH} == set(first)
    assert all(was is not now for was, now in zip(first, second, strict=True))


def test_process_is_unfit_for_a_fault_of_the_other_kind_and_fit_for_all_else() -> None:
    clocks = clocks_of(Inject("clock-fast", ("A",)))
    clocks.at_start("A")
    assert ["", "A was started with both clocks to set; expected wall", ""] == [
        clocks.unfit("A", ability) for ability in (Ability.CLOCKS, Ability.WALL_CLOCK, Ability.LOST_DISKS)
    ]


def host_that_prints(*texts: str) -> Any:
    """Return a host whose node has printed more at each look."""
    shown = iter(texts)
    return SimpleNamespace(ask_clocks=lambda _: lambda: next(shown))


def test_clocks_are_those_of_the_first_whole_line_that_has_them() -> None:
    said = "x clocks: wall_ns=12 monotonic_ns=3"
    found = asked(host_that_prints("", f"noise\n{said}", f"noise\n{said}4\nmore"), TARGET, "A")
    assert (12, 34) == (found.wall_ns, found.monotonic_ns)
    assert found.asked.monotonic_ns <= found.answered.monotonic_ns


def test_process_that_prints_no_clocks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLOCKS_ANSWER_S_MAX", 0.0)
    host: Any = SimpleNamespace(ask_clocks=lambda _: lambda: "noise\n")
    with pytest.raises(PreconditionError, match="clocks of A: not printed within 0 s"):
        asked(host, TARGET, "A")
