"""Rules of links may name processes of the services that a scenario's head names, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from harness.model import UsageError
from harness.scenario.file import Scenario, parse
from harness.scenario.steps import Inject

HEAD = """title T
source S
nodes A B replicas
{services}records m1 1
produce m1 acks=all
{steps}expect hw: none
"""
NAMED = ("services coordinator\n", "services coordinator 1\n", "services zookeeper 3\nservices coordinator\n")


def read(steps: str, services: str = NAMED[0]) -> Scenario:
    return parse("s", HEAD.format(services=services, steps=f"{steps}\n"), "s.txt", ())


@pytest.mark.parametrize("services", NAMED)
@pytest.mark.parametrize(
    ("step", "src", "dst"),
    [
        ("cut coordinator-1 -> A", "coordinator-1", "A"),
        ("cut A <-> coordinator-1", "A", "coordinator-1"),
        ("cut coordinator-1 -> metadata close", "coordinator-1", "metadata"),
        ("hold requests command coordinator-1 -> A", "coordinator-1", "A"),
        ("delay answers command coordinator-1 -> B 0.5", "coordinator-1", "B"),
        ("double command coordinator-1 -> *", "coordinator-1", "*"),
    ],
)
def test_process_is_an_end_of_a_link_of_either_side(services: str, step: str, src: str, dst: str) -> None:
    act: Any = read(step, services).steps[1].act
    assert (src, dst) == (act.src, act.dst)
    assert step == read(step, services).steps[1].text


@pytest.mark.parametrize(
    ("step", "services", "word", "near"),
    [
        ("cut coordinator-1 -> A", "", "coordinator-1", ""),
        ("hold requests command A -> coordinator-1", "", "coordinator-1", ""),
        ("cut coordinator-2 -> A", NAMED[0], "coordinator-2", "coordinator-1"),
        ("cut A -> zookeeper-1", NAMED[0], "zookeeper-1", ""),
        ("double command coordinator1 -> A", NAMED[0], "coordinator1", "coordinator-1"),
    ],
)
def test_process_that_no_head_names_is_refused_with_the_ends_that_there_are(
    step: str, services: str, word: str, near: str
) -> None:
    with pytest.raises(UsageError) as raised:
        read(step, services)
    said = str(raised.value)
    assert f"{word!r}" in said
    assert "expected an end of a link: one of A, B, " in said
    assert ("coordinator, coordinator-1, metadata, *" in said) == bool(services)
    assert not near or said.endswith(f"Did you mean {near!r}?")


@pytest.mark.parametrize(
    "step", ["cut-from-metadata A from coordinator", "cut-from-metadata A B from coordinator-1", "kill one"]
)
def test_service_that_nodes_are_parted_from_is_read_and_printed(step: str) -> None:
    text = HEAD.format(services=NAMED[0], steps=f"{step}\n")
    found = parse("s", text, "s.txt", ("cut-from-metadata", "kill")).steps[1]
    assert isinstance(found.act, Inject)
    assert step == found.text
    assert (found.act.service or "") == step.partition(" from ")[2]


def test_service_that_no_head_names_is_nothing_to_be_parted_from() -> None:
    text = HEAD.format(services=NAMED[0], steps="cut-from-metadata A from zookeeper\n")
    with pytest.raises(UsageError, match="'zookeeper'; expected a service of the head, or a process of one"):
        parse("s", text, "s.txt", ("cut-from-metadata",))


def test_link_from_a_process_to_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="coordinator-1 -> coordinator-1; expected two ends"):
        read("cut coordinator-1 -> coordinator-1")
