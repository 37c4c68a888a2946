"""Polls of consumers: what leaders lawfully answered is never held against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from checkers.judge import check_in_process
from harness.model import Anomaly, Kind, Op
from tests.checkers.plants.edit import RUNS
from tests.checkers.polling import answers, consumed

REPORTED = sorted(path.stem for path in RUNS.glob("*.jsonl") if not path.stem.startswith("kafka"))


def _run(name: str) -> list[Op]:
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Op.from_json(line) for line in lines]


@pytest.mark.parametrize("anew", [False, True], ids=["reads on", "seeks"])
@pytest.mark.parametrize("name", REPORTED)
def test_polls_that_leaders_answer_lawfully_change_nothing(name: str, anew: bool) -> None:
    """Two readers see two records at an offset where one was lost for no lawful reason: that alone is added."""
    ops = _run(name)
    assert next(answers(ops)).node
    before, found = check_in_process(ops), check_in_process(consumed(ops, anew=anew))
    differ = [each for each in found if each.kind is Kind.INCONSISTENT_OFFSETS]
    lost = {offset for each in before if each.kind is Kind.LOST for offset in _offsets(each)}
    assert {offset for each in differ for offset in _offsets(each)} <= lost
    assert _kinds(before) == _kinds(each for each in found if each not in differ), found


def _offsets(anomaly: Anomaly) -> set[int]:
    return {offset for first, end in anomaly.ranges for offset in range(first, end)}


def _kinds(anomalies: Iterable[Anomaly]) -> Counter[tuple[object, ...]]:
    return Counter((each.kind, each.ranges, each.checker) for each in anomalies)
