"""A scenario's text reads back as the same scenario."""

from __future__ import annotations

import pytest

from harness.scenario.file import parse
from harness.scenario.text import text_of
from tests.faults import NEMESES

FULL = """
title    What it is
source   KIP-101
source   chance
nodes    B A replicas, C controller
records  m1 4, m2 1..3, m3 m2+1..m2+3
settings unclean_election=yes min_isr=2 message_format=without_epochs heal_within_s=2.5 replica_lag_ms_max=60

produce m1 acks=all
power-loss A B
"""


@pytest.mark.parametrize(
    "text", [FULL, FULL.replace("replica_lag_ms_max=60", ""), FULL.replace("C contr", "B contr")]
)
def test_text_of_a_scenario_reads_as_that_scenario(text: str) -> None:
    read = parse("x", text, "x", NEMESES)
    again = parse("x", text_of(read), "x", NEMESES)
    assert (read.title, read.sources, read.replicas, read.nodes) == (
        again.title, again.sources, again.replicas, again.nodes
    )  # fmt: skip
    assert (read.records, read.settings) == (again.records, again.settings)
    assert [step.text for step in read.steps] == [step.text for step in again.steps]
