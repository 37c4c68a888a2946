"""checkers/rules/oracles.py: what the simulator's oracles recorded becomes anomalies, unchanged."""

from __future__ import annotations

from checkers.rules.oracles import KINDS, oracles
from harness.model import ORACLES, OpType, Source
from targets.simulator.broker.oracles import Rule
from targets.simulator.broker.oracles.generations import RULE as GENERATION
from tests.checkers.golden import random_run
from tests.checkers.story import TOPIC


def test_every_rule_of_the_simulator_has_a_kind_and_a_definition() -> None:
    assert {f"oracle-{rule}" for rule in (*Rule, GENERATION)} == {kind.value for kind in ORACLES}
    assert set(ORACLES) == {definition.kind for definition in KINDS}


def test_violation_becomes_an_anomaly_with_its_offset_nodes_and_sentence() -> None:
    (found,) = oracles(random_run("kill", seen_by_oracle=True).ops)
    assert (((0, 1),), ("A",)) == (found.ranges, found.nodes)
    assert found.sentence == "Step 9, at 0.030 s: x was committed at offset 0 and is not on A."


def test_violation_about_no_offset_has_no_range() -> None:
    story = random_run("kill")
    seen = {"rule": "office", "step": 9, "nodes": ["A"], "offset": -1, "sentence": "Step 9: it did.", **TOPIC}
    story.add(Source.SIMULATOR, "simulator", OpType.INFO, "violation", **seen)
    (found,) = oracles(story.ops)
    assert ("oracle-office", ()) == (found.kind.value, found.ranges)
