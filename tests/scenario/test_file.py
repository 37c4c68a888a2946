"""Scenario files: how they are read, what is drawn from them, and the errors for wrong lines."""

from __future__ import annotations

import re

import pytest

from harness.model import UsageError
from harness.scenario.condition_types import InSync
from harness.scenario.file import draw, parse
from harness.scenario.steps import Await, Inject
from harness.suite.scenario_files import read_scenario
from harness.target.settings import Settings
from targets.broker.core.rules import PROTOCOLS
from tests.faults import NEMESES
from workloads import SCENARIOS

TEXT = """
title    A title
source   KIP-101, Scenario 1
source   another
nodes    B A replicas, C controller
records  m1 1..4, m2 m1+1..m1+3

# Two lines
# of story.
produce m1 acks=all
kill A

expect hw: lost m1
expect kip101, kip101-text: none
"""


def test_scenario_is_read_as_it_is_written() -> None:
    scenario = parse("one", TEXT, "one.txt", NEMESES)
    assert ("A title", ("KIP-101, Scenario 1", "another")) == (scenario.title, scenario.sources)
    assert (("B", "A"), ("C", "B", "A")) == (scenario.replicas, scenario.nodes)
    assert [(9, "produce m1 acks=all", "Two lines of story."), (10, "kill A", "")] == [
        (step.line - 1, step.text, step.narrative) for step in scenario.steps
    ]
    assert {"hw": "lost m1", "kip101": "none", "kip101-text": "none"} == dict(scenario.expectations)


def test_controller_that_holds_a_replica_starts_first() -> None:
    scenario = parse(
        "one", TEXT.replace("B A replicas, C controller", "A B replicas, A controller"), "one.txt", NEMESES
    )
    assert (("A", "B"), ("A", "B")) == (scenario.replicas, scenario.nodes)


def test_draw_is_the_same_for_one_seed_and_within_what_is_written() -> None:
    scenario = parse("one", TEXT, "one.txt", NEMESES)
    assert draw(scenario, 7) == draw(scenario, 7)
    drawn = [draw(scenario, seed) for seed in range(200)]
    assert {1, 2, 3, 4} == {one.counts["m1"] for one in drawn}
    assert {1, 2, 3} == {one.counts["m2"] - one.counts["m1"] for one in drawn}
    assert all(len(set(one.ids.values())) == 3 for one in drawn)
    assert len({tuple(one.ids.values()) for one in drawn}) > 190


CONDITIONAL = TEXT.replace(
    "kill A\n",
    """
# Seen.
under kip380: await isr = B
unless kip380, hw: require isr = A B

# Without a fence.
under kip320+fence_fetch=no, kip101: kill A
kill B
""",
)


@pytest.mark.parametrize(
    ("names", "played"),
    [
        (("hw",), [("kill B", "Without a fence.")]),
        (("kip101",), [("require isr = A B", "Seen."), ("kill A", "Without a fence."), ("kill B", "")]),
        (("kip320",), [("require isr = A B", "Seen."), ("kill B", "Without a fence.")]),
        (("kip380",), [("await isr = B", "Seen."), ("kill B", "Without a fence.")]),
        (("kip380+fence_broker_epoch=no", "kip380"), [("await isr = B", "Seen."), ("kill B", "Without a fence.")]),
        (
            ("kip320+fence_fetch=no", "kip320"),
            [("require isr = A B", "Seen."), ("kill A", "Without a fence."), ("kill B", "")],
        ),
    ],
)
def test_conditional_step_is_played_under_whom_it_names(
    names: tuple[str, ...], played: list[tuple[str, str]]
) -> None:
    steps = parse("one", CONDITIONAL, "one.txt", NEMESES).under(names).steps
    assert "produce m1 acks=all" == str(steps[0].act)
    assert played == [(str(step.act), step.narrative) for step in steps[1:]]


def test_old_name_of_a_fault_is_read_as_its_name() -> None:
    """The old name is accepted for one release; stored random schedules have it too."""
    text = CONDITIONAL + "resign A\nunder kip380: resign B\n"
    steps = parse("one", text, "one.txt", NEMESES).under(("kip380",)).steps[-2:]
    assert ["depose-controller A", "under kip380: depose-controller B"] == [step.text for step in steps]
    assert [Inject("depose-controller", (node,)) for node in "AB"] == [step.act for step in steps]


def test_conditional_step_keeps_its_whole_line_for_who_reads_it() -> None:
    step = parse("one", CONDITIONAL, "one.txt", NEMESES).under(("kip380",)).steps[1]
    assert ("under kip380: await isr = B", Await(InSync(("B",)))) == (step.text, step.act)


def test_release_is_named_with_its_system_in_steps_and_expectations() -> None:
    text = TEXT.replace("kill A\n", "under kafka:2.1.1@1.1, hw: kill A\n") + "expect kafka:2.1.1@1.1: stuck A\n"
    scenario = parse("one", text, "one.txt", NEMESES)
    assert "stuck A" == scenario.expectations["kafka:2.1.1@1.1"]
    assert "kill A" == str(scenario.under(("2.1.1@1.1", "kafka:2.1.1@1.1", "kip101", "kafka")).steps[-1].act)
    assert "produce m1 acks=all" == scenario.under(("3.9.1", "kafka:3.9.1", "kip380", "kafka")).steps[-1].text


def test_mutant_has_an_expectation_of_its_own_whatever_the_order_of_its_changes() -> None:
    text = TEXT + "expect kip320+fence_isr_join=no+fence_fetch=no, kip380: diverged 4-7 A B\n"
    expected = parse("one", text, "one.txt", NEMESES).expectations
    assert "diverged 4-7 A B" == expected["kip320+fence_fetch=no+fence_isr_join=no"] == expected["kip380"]


def test_settings_are_read_from_the_head() -> None:
    text = TEXT.replace("records ", "settings min_isr=2\nsettings unclean_election=yes\nrecords ")
    assert Settings(min_isr=2, unclean_election=True) == parse("one", text, "one.txt", NEMESES).settings
    assert Settings() == parse("one", TEXT, "one.txt", NEMESES).settings


def test_count_may_be_fixed_and_records_may_stand_in_several_lines() -> None:
    text = TEXT.replace("m1 1..4, m2 m1+1..m1+3", "m1 11, m2 9\nrecords m3 m1+2")
    scenario = parse("one", text, "one.txt", NEMESES)
    assert [{"m1": 11, "m2": 9, "m3": 13}] * 3 == [dict(draw(scenario, seed).counts) for seed in range(3)]


def test_three_replicas_beside_a_controller() -> None:
    text = TEXT.replace("B A replicas, C controller", "A B C replicas, D controller")
    scenario = parse("one", text, "one.txt", NEMESES)
    assert (("A", "B", "C"), ("D", "A", "B", "C")) == (scenario.replicas, scenario.nodes)


@pytest.mark.parametrize(
    ("line", "instead", "told"),
    [
        ("title    A title", "", "no line 'title'"),
        ("B A replicas, C controller", "B A followers", "nodes 'B A followers'"),
        ("m1 1..4", "m1 1-4", "records 'm1 1-4'"),
        ("m1 1..4", "m1 m0+1..m0+2", "'m0' is not counted before it"),
        ("expect hw: lost m1", "expect hw lost m1", "one.txt:13: expect 'hw lost m1'"),
        ("expect hw: lost m1", "expect hw, kip101: lost m1", "kip101 has the expectation 'lost m1' already"),
        (
            "expect hw: lost m1",
            "expect hw+fence: lost m2",
            "one.txt:13: 'hw+fence'; expected PROTOCOL or PROTOCOL+",
        ),
        (
            "kill A",
            "under kip380 kill A",
            "one.txt:11: 'under kip380 kill A'; expected 'under PROTOCOL[, PROTOCOL]: STEP'",
        ),
        ("kill A", "unless kip380:", "expected 'unless PROTOCOL[, PROTOCOL]: STEP'"),
        ("kill A", "unless kip 380: kill A", "one.txt:11: 'kip 380'; expected PROTOCOL"),
        (
            "source   another",
            "settings min_isr=0",
            "one.txt:4: setting 'min_isr=0'; expected min_isr=a whole number",
        ),
    ],
)
def test_wrong_line_is_named_with_what_was_expected(line: str, instead: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse("one", TEXT.replace(line, instead), "one.txt", NEMESES)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_every_scenario_says_what_it_expects_under_every_protocol(path: object) -> None:
    scenario = read_scenario(path)  # type: ignore[arg-type]
    # An upgrade begins with the protocols that it is from.
    assert set(PROTOCOLS) <= set(scenario.expectations) or (scenario.upgrades and scenario.expectations)
    assert all(source for source in scenario.sources)
    assert scenario.steps[0].narrative
