"""Where metadata are polled, a state that was not seen may have stood between two looks."""

from __future__ import annotations

import pytest

from checkers.checker import partitions
from checkers.facts.moments import never_stood
from checkers.rules.states import states_seen
from harness.model import Op, Source
from harness.target.traits import Seen, Traits
from tests.checkers.plants.edit import Edit

WATCHED = {"emits_events": "yes"}
POLLED = Traits(emits_events=True, seen=Seen.POLLED).as_text()


def run(traits: object) -> Edit:
    """Return a run in which the first state of the partition was not seen."""
    edit = Edit("local-kip101-1")
    edit.lines[0]["value"]["traits"] = dict(traits)  # type: ignore[call-overload]
    return edit.drop(edit.find(Source.METADATA, "state"))


def part_of(edit: Edit) -> list[Op]:
    (part,) = (ops for key, ops in partitions(edit.ops).items() if key[1] >= 0)
    return list(part)


@pytest.mark.parametrize(("traits", "found"), [(WATCHED, True), (POLLED, False)], ids=["watched", "polled"])
def test_state_that_a_poll_may_have_missed_is_no_contradiction(traits: dict[str, str], *, found: bool) -> None:
    missed = states_seen(part_of(run(traits)))
    assert found is bool(missed)


@pytest.mark.parametrize(("traits", "found"), [(WATCHED, True), (POLLED, False)], ids=["watched", "polled"])
def test_epoch_after_the_last_look_may_have_stood(traits: dict[str, str], *, found: bool) -> None:
    ops = part_of(run(traits))
    said = next(op for op in ops if op.f == "leader")
    proof = never_stood(ops, 99, said)
    assert found is bool(proof)
