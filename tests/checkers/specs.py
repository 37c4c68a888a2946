"""Specs of runs whose histories the tests write: what `judge` needs besides the history."""

from __future__ import annotations

from harness.run.spec import RunSpec
from harness.scenario.file import draw, parse
from harness.scenario.variant import Variant
from harness.search.random_runs import RandomRuns
from harness.target.target import Target
from targets import VIRTUAL_HOST as SIM
from tests.faults import NEMESES

BROKER: Target = RandomRuns(target="broker", variant="hw", host=SIM).load_target()


def random_spec(host: str = SIM) -> RunSpec:
    """Return the spec of a random run."""
    return RandomRuns(target="broker", variant="kip101", host=host).spec(3)


def written_spec(expected: str, protocol: str = "hw") -> RunSpec:
    """Return the spec of a written scenario that expects this outcome."""
    text = f"""
title T
source KIP-101
source KIP-279
nodes A B replicas, C controller
records m1 1, m2 1
produce m1 acks=all
produce m2 acks=all
expect {protocol}: {expected}
"""
    scenario = parse("written-1", text, "written-1.txt", NEMESES)
    return RunSpec(
        target="broker",
        host="local",
        variant=Variant(protocol=protocol),
        rules=BROKER.rules(protocol, ()),
        traits=BROKER.traits(protocol, ()),
        scenario=scenario,
        draw=draw(scenario, 3),
        make="scenarios",
    )
