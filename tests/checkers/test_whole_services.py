"""Ends of links may be processes of services that the set-up names, and no others; replicas are none of them."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.rules.whole import whole
from harness.model import Source
from tests.checkers.plants.edit import Edit


def edited(services: list[str] | None) -> Edit:
    edit = Edit("sim-clean")
    if services is not None:
        edit.change(edit.lines[0], services=services)
    return edit


def said(edit: Edit) -> list[str]:
    return [anomaly.sentence for anomaly in whole(edit.ops)]


def link(edit: Edit, *ends: str) -> None:
    """Cut a link, and lose what is sent on it."""
    cut = edit.find(Source.FABRIC, "cut")
    lost = edit.again(edit.find(Source.FABRIC, "lost"), link=[*ends], after=cut)
    edit.again(cut, link=[*ends])
    assert edit.at(lost) > edit.at(cut)


def learned(edit: Edit, source: str, node: str, leader: str) -> None:
    """Let a node learn a state from somebody."""
    setup = edit.lines[0]["value"]
    edit.insert(
        edit.find(Source.FABRIC, "fetch"),
        Source.FABRIC,
        "learned",
        "fabric",
        link=[source, node],
        topic=setup["topic"],
        partition=setup["partition"],
        leader=leader,
        epoch=0,
        isr=["A"],
        error=0,
    )


@pytest.mark.parametrize("ends", [("boss-1", "A"), ("A", "boss-1"), ("boss-1", "metadata")])
def test_link_of_a_process_is_of_the_run_if_the_set_up_names_it(ends: tuple[str, str]) -> None:
    for services, strange in ((None, True), ([], True), (["store-1"], True), (["store-1", "boss-1"], False)):
        edit = edited(services)
        link(edit, *ends)
        assert strange is any("names boss-1; the set-up names" in each for each in said(edit))
        assert strange or [] == said(edit)


def test_state_that_a_process_told_is_of_the_run_too() -> None:
    for services, strange in ((None, True), (["boss-1"], False)):
        edit = edited(services)
        learned(edit, "boss-1", "A", "A")
        assert strange is any("'learned'" in each and "names boss-1" in each for each in said(edit))


@pytest.mark.parametrize(
    ("source", "f", "change"),
    [
        (Source.METADATA, "members", {"nodes": ["A", "B", "boss-1"]}),
        (Source.METADATA, "state", {"isr": ["A", "boss-1"]}),
    ],
)
def test_process_of_a_service_is_no_node_of_the_metadata(source: Source, f: str, change: dict[str, Any]) -> None:
    edit = edited(["boss-1"])
    edit.change(edit.find(source, f), **change)
    assert any(f"{source} '{f}'" in each and "names boss-1" in each for each in said(edit))
