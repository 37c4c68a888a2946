"""Every checker finds nothing in its good golden history and every planted anomaly in its bad one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers import CHECKERS
from checkers.checker import Checker, check, partitions
from harness.model import Anomaly, Kind
from tests.checkers.golden import STORIES, ops_of, text_of

Found = tuple[Kind, tuple[tuple[int, int], ...], tuple[str, ...], int | None]

PLANTED: dict[str, list[Found]] = {
    "lost": [(Kind.LOST, ((3, 5),), ("A",), 1)],
    "diverged": [(Kind.DIVERGED, ((3, 5),), ("A", "B"), None)],
    "leaders": [(Kind.TWO_LEADERS, (), ("A", "B"), 0), (Kind.LED_TWICE, (), ("A",), 0)],
    "order": [(Kind.DISORDER, ((3, 4),), ("A",), 1), (Kind.DISORDER, ((3, 4),), ("A",), 2)],
    "holes": [(Kind.HOLE, ((2, 11),), ("A",), None), (Kind.HOLE, ((12, 14),), ("A",), None)],
    "checkpoint": [(Kind.CHECKPOINT, (), ("A",), None)],
    "caught-up": [(Kind.STUCK, (), ("A",), None)],
    "exited": [(Kind.EXITED, (), ("B",), None), (Kind.EXITED, (), ("B",), None)],
    "unchecked": [(Kind.UNREADABLE, (), ("A",), None)] + [(Kind.UNCHECKED, (), (), None)] * 6,
    "vacuous": [(Kind.VACUOUS, (), (), None)],
    "oracles": [(Kind.ORACLE_COMMITTED, ((0, 1),), ("A",), None)],
}


def _play(checker: Checker, story: str) -> list[Anomaly]:
    parts = partitions(ops_of(story)).values()
    return [found for part in parts for found in check(part, {checker.name: checker})]


def _hold_to_golden(checker: Checker) -> None:
    found = _play(checker, f"{checker.name}-bad")
    assert PLANTED[checker.name] == [(a.kind, a.ranges, a.nodes, a.epoch) for a in found]
    assert [] == _play(checker, f"{checker.name}-ok")


def test_every_checker_has_golden_histories() -> None:
    """A checker without stories of its own is held to the plants (test_mutations.py turns each checker off)."""
    assert {*PLANTED} <= {*CHECKERS}
    assert {f"{name}-{end}" for name in PLANTED for end in ("ok", "bad")} == STORIES.keys()


@pytest.mark.parametrize("name", STORIES)
def test_golden_file_is_what_its_story_tells(name: str) -> None:
    assert text_of(name) == "".join(op.to_json() + "\n" for op in ops_of(name))


@pytest.mark.parametrize("name", PLANTED)
def test_checker_finds_what_is_planted_and_nothing_else(name: str) -> None:
    _hold_to_golden(CHECKERS[name])


@pytest.mark.parametrize("name", PLANTED)
def test_golden_histories_fail_when_the_checker_is_blind(name: str) -> None:
    with pytest.raises(AssertionError):
        _hold_to_golden(replace(CHECKERS[name], rule=lambda _ops: []))


@pytest.mark.parametrize("name", PLANTED)
def test_golden_histories_fail_when_the_checker_sees_things(name: str) -> None:
    ghost = Anomaly(kind=Kind.LOST, topic="t", partition=0)
    rule = CHECKERS[name].rule
    with pytest.raises(AssertionError):
        _hold_to_golden(replace(CHECKERS[name], rule=lambda ops: [*rule(ops), ghost]))


@pytest.mark.parametrize("name", PLANTED)
def test_anomaly_proves_itself_with_ops_of_the_history(name: str) -> None:
    ops = ops_of(f"{name}-bad")
    for anomaly in _play(CHECKERS[name], f"{name}-bad"):
        assert name == anomaly.checker
        assert anomaly.sentence.endswith(".")
        assert {*anomaly.proof} <= {op.index for op in ops}
        assert anomaly.proof or anomaly.kind is Kind.UNCHECKED
