"""Plays a few steps in the simulator, for faults that only simulated machines have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from harness.events import Injection
from harness.model import Op, OpType, events_of
from harness.run.result import RunResult
from harness.run.spec import RunSpec
from harness.scenario.file import draw, parse
from harness.scenario.variant import Variant
from harness.search.simulated import play_in_memory, sim_player
from targets.broker_target.target import TARGET
from tests.faults import NEMESES

_FILE = """\
title    A test
source   a test
nodes    {nodes}
records  m1 2, m2 1, m3 1
{settings}
{head}
{steps}
expect kip380, hw, kip101: none
"""


def played(
    name: str, steps: str, protocol: str = "kip380", **options: Unpack[Options]
) -> tuple[RunResult, Sequence[Op]]:
    """Return the result and the history of a written scenario, of two replicas if not named, A leading first."""
    return play_in_memory(sim_player(TARGET), spec_of(name, steps, protocol, **options))


class Options(TypedDict, total=False):
    """What else a written scenario may have."""

    settings: str
    head: str
    seed: int
    nodes: str


def spec_of(
    name: str,
    steps: str,
    protocol: str = "kip380",
    *,
    settings: str = "",
    head: str = "",
    seed: int = 1,
    nodes: str = "A B replicas, C controller",
) -> RunSpec:
    """Return the spec of such a run."""
    text = _FILE.format(nodes=nodes, settings=f"settings {settings}" if settings else "", head=head, steps=steps)
    scenario = parse(name, text, name, NEMESES)
    return RunSpec(
        target=TARGET.name,
        host="sim",
        variant=Variant(protocol=protocol),
        rules=TARGET.rules(protocol, ()),
        traits=TARGET.traits(protocol, ()),
        scenario=scenario,
        draw=draw(scenario, seed),
    )


def seen(ops: Sequence[Op], fault: str) -> str:
    """Return what the probe of a fault saw, "" if it did not take effect."""
    found = (each for op, each in events_of(ops, Injection) if each.name == fault and op.type is OpType.OK)
    return next((each.probe or "" for each in found), "")


def refused(ops: Sequence[Op], fault: str) -> str:
    """Return why a fault did not take effect, "" if it did."""
    found = (each for op, each in events_of(ops, Injection) if each.name == fault and op.type is OpType.FAIL)
    return next((each.error for each in found), "")
