"""Each method of the seam is printed with whose it is in each target, and what a target lacks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from harness.docs import markdown, seam_table
from harness.metadata import Polled
from harness.target import found as finder
from harness.target.found import Found
from harness.target.metadata import Look, Metadata, TargetRun
from harness.target.operator import Operator
from harness.target.parts import members
from harness.target.target import Target
from harness.target.wire import Wire
from targets.broker_target.target import BrokerTarget


def rows() -> Mapping[str, list[str]]:
    """Return the cells of each row, by its first one."""
    lines = [line.strip("| ").split(" | ") for part in seam_table.methods() for line in part.splitlines()]
    return {cells[0].strip("`"): cells[1:] for cells in lines if len(cells) > 1}


@pytest.mark.parametrize("interface", [Target, Wire, Metadata, Operator])
def test_every_method_of_the_seam_has_a_row(interface: type) -> None:
    assert {f"{interface.__name__}.{member}" for member in members(interface)} <= rows().keys()


def test_row_says_whose_a_method_is() -> None:
    found = rows()
    assert ["broker", "fluss", "kafka", "nats", "rocketmq"] == found["of the seam"]
    assert (["own"] * 5, ["family", "own", "family", "plain", "plain"]) == (
        found["Target.launch"],
        found["Metadata.truth"],
    )
    assert (["family", "–", "–", "own", "–"], ["–", "own", "–", "–", "–"]) == (
        found["Operator.remove"],
        found["Target.downloads"],
    )
    assert [*["plain"] * 3, "–", "plain"] == found["Service.enough"]
    assert ["yes", *["no"] * 4] == found["emits_events"]
    assert (["plain", "own", "plain", "own", "own"], ["family", "own", "family", "own", "own"]) == (
        found["Operator.create"],
        found["Operator.elect"],
    )
    assert "by version" == found["idempotence"][0]


class Asked(Operator):
    """An operator that can be asked for elections alone."""

    def elect(self, topic: str, partition: int, name: str) -> str:
        return f"{name} asked for"


class Mine(BrokerTarget):
    """Our broker with a file for its metadata, without a wire and services."""

    name = "mine"
    wire = None
    services: tuple[Any, ...] = ()
    abilities = frozenset()

    def metadata(self, run: TargetRun) -> Polled:  # type: ignore[override]
        return Polled(run, Look)

    def operator(self, run: TargetRun, metadata: Metadata) -> Asked:  # type: ignore[override]
        return Asked()


def test_ready_made_part_is_plain_and_what_is_left_out_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Found(name="mine", where="here", folder=None, module="tests")
    monkeypatch.setattr(Found, "load", lambda _: Mine())
    monkeypatch.setattr(finder, "found", lambda: MappingProxyType({"mine": one}))
    found = rows()
    assert (["plain"], ["–"]) == (found["Metadata.truth"], found["Metadata.controller"])
    lacking = ("Target.wire", "Wire.stands", "Reading.size", "Target.services", "Service.mode", "Operator.elect")
    assert {"–"} == {cell for name in lacking for cell in found[name]}


def test_printed_part_is_put_into_a_page_that_is_written_by_hand() -> None:
    page = f"# Mine\n\n{markdown.BEGIN}\n\nold\n\n{markdown.END}\n\nBy hand.\n"
    new = markdown.within(page, "new", "newer")
    assert f"# Mine\n\n{markdown.BEGIN}\n\nnew\n\nnewer\n\n{markdown.END}\n\nBy hand.\n" == new
    assert new == markdown.within(new, "new", "newer")
    with pytest.raises(AssertionError, match="the page has no printed part; expected '<!-- Printed"):
        markdown.within("# Mine\n", "new")
