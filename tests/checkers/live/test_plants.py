"""Over all golden histories and plants the live check sees only what the checkers call a violation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import pytest

from checkers.judge import check_in_process
from checkers.live.rules import ANOTHER, BACK, GONE, HIGH_WATERMARK, RULES, TWICE
from checkers.live.watch import LiveCheck
from harness.events import ScheduleStopped
from harness.model import VERDICT_OF, Kind, Op, Verdict
from tests.checkers.golden import STORIES, ops_of
from tests.checkers.plants.classes import CLASSES
from tests.checkers.plants.histories import HISTORIES
from tests.checkers.plants.table import PLANTS

# Of each class of plants that the live check can see: how many it sees, and how many there are.
SEEN: Final = {
    "it falls at a leader": (3, 3),
    "clients are told one, and then a lower one": (3, 3),
    "a read goes back": (3, 3),
    "a read stops short of what is committed": (3, 3),
    "a read shows what is rewritten": (3, 3),
    "a read shows what vanishes": (3, 3),
    # A log may begin where a read does, and acks=1 promises nothing.
    "a read skips": (1, 3),
    # A record above all others contradicts nothing that was seen before, if the high watermark is above it.
    "a read shows what no log holds": (1, 3),
    # It sees no loss that only final logs show.
    "a proven loss is called a hang, as healing failed as well": (5, 6),
    # On real machines events race, and a record that was appended before a power loss may be lost.
    "a member lacks what is committed": (2, 5),
    "two leaders are seen only in who appends": (1, 6),
    # It does not look at polls: it sees that a record is lost, in the final read.
    "readers see different records at one offset": (1, 3),
    # Of what a group lost it sees what no fault at all explains, and what a read lacks.
    "a majority had it in memory, and faults took it from too few": (4, 9),
    "all in sync promised it, and not the leader alone": (3, 3),
    "a group acknowledged two records at one offset": (3, 3),
    "a replica lacks what another holds, where offsets need not follow each other": (2, 4),
}
# A plant in which each rule fires, by its first violation.
FIRST: Final = {
    TWICE: "lost-without-a-power-loss",
    ANOTHER: "text-altered-on-all",
    HIGH_WATERMARK: "high-watermark-falls-2",
    BACK: "read-skips-local",
    GONE: "cut-and-copied-again",
}


@cache
def _seen(name: str) -> Sequence[tuple[ScheduleStopped, int]]:
    return _all(HISTORIES[name])


def _all(ops: Sequence[Op]) -> list[tuple[ScheduleStopped, int]]:
    """Return all that the live check sees in a history, as if it went on, each with the index of its op."""
    watch = LiveCheck()
    return [(seen, op.index) for op in ops if (seen := watch.step(op)) is not None]


def _invalid(kinds: frozenset[Kind]) -> bool:
    return any(VERDICT_OF[kind] is Verdict.INVALID for kind in kinds)


def test_what_it_sees_in_a_plant_is_a_violation_of_the_kinds_of_its_rule() -> None:
    """`PLANTS[…].kinds` are exactly what the checkers find: test_plants.py compares them."""
    flagged = {name: seen for name in PLANTS if (seen := _seen(name))}
    assert len(flagged) >= 50
    for name, seen in flagged.items():
        for each, _ in seen:
            assert PLANTS[name].kinds & {*RULES[each.rule].found}, (name, each)


def test_it_sees_nothing_in_a_lawful_twin_or_a_clean_run() -> None:
    lawful = [name for name, plant in PLANTS.items() if not _invalid(plant.kinds)]
    assert len(lawful) > 300
    assert sum(name.endswith("-lawful") for name in lawful) > 240
    assert {} == {name: seen for name in lawful if (seen := _seen(name))}


def test_it_sees_so_many_of_each_class_of_plants() -> None:
    found = {
        name: (sum(bool(_seen(planted)) for planted, _ in pairs), len(pairs)) for name, pairs in CLASSES.items()
    }
    assert SEEN == {name: numbers for name, numbers in found.items() if numbers[0]}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_the_first_to_see_a_plant(rule: str) -> None:
    assert rule == _seen(FIRST[rule])[0][0].rule


def test_proof_names_the_op_that_shows_it_and_only_earlier_ones() -> None:
    for name in PLANTS:
        for seen, index in _seen(name):
            assert (index, True) == (max(seen.proof), min(seen.proof) >= 0), name
            assert seen.sentence.endswith(".")


@pytest.mark.parametrize("name", STORIES)
def test_what_it_sees_in_a_golden_history_is_a_violation(name: str) -> None:
    ops = ops_of(name)
    kinds = frozenset(anomaly.kind for anomaly in check_in_process(ops))
    for each, _ in _all(ops):
        assert kinds & {*RULES[each.rule].found}, each
    assert ("lost-bad" == name) is bool(_all(ops))
