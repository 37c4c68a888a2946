"""A system without a controller, without members to show, or without a file of epochs breaks no rule by that."""

from __future__ import annotations

import pytest

from checkers.checker import partitions
from checkers.rules.checkpoint import checkpoint
from checkers.rules.registrations import registrations
from harness.model import Op, Source
from harness.target.traits import Traits
from tests.checkers.plants.edit import Edit

# The controller and the members were never shown, and no replica has a file of epochs.
WITHOUT = ("controller", "members")


def run(**traits: object) -> list[Op]:
    """Return a run whose metadata showed neither, and whose logs have no epochs beside them."""
    edit = Edit("local-kip101-1")
    edit.lines[0]["value"]["traits"] = dict(Traits(**{"emits_events": True, **traits}).as_text())  # type: ignore[arg-type]
    for line in edit.lines:
        if line["f"] == "snapshot":
            line["value"]["epochs"] = None
    (part,) = (ops for key, ops in partitions(edit.ops).items() if key[1] >= 0)
    return [op for op in part if op.source is not Source.METADATA or op.f not in WITHOUT]


def complaints(ops: list[Op]) -> str:
    return " | ".join(each.sentence for each in registrations(ops))


@pytest.mark.parametrize("named", [True, False])
def test_controller_that_was_never_named_is_missed_where_the_system_has_one(*, named: bool) -> None:
    assert named is ("controller was never seen" in complaints(run(names_controller=named)))


@pytest.mark.parametrize("shown", [True, False])
def test_leader_that_was_never_a_member_is_strange_where_the_system_shows_them(*, shown: bool) -> None:
    assert shown is ("registrations had not named it" in complaints(run(shows_members=shown)))


@pytest.mark.parametrize("file", ["epochs", ""])
def test_epochs_that_are_not_beside_the_log_contradict_it_where_the_system_keeps_them(file: str) -> None:
    assert bool(file) is bool(checkpoint(run(epochs_file=file)))
