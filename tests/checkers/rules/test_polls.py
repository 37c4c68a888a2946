"""Polls of consumers: what leaders lawfully answered is never held against them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from checkers.judge import check_in_process
from harness.model import Op
from tests.checkers.plants.edit import RUNS
from tests.checkers.polling import answers, consumed

REPORTED = sorted(path.stem for path in RUNS.glob("*.jsonl") if not path.stem.startswith("kafka"))


def _run(name: str) -> list[Op]:
    lines = (RUNS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Op.from_json(line) for line in lines]


@pytest.mark.parametrize("anew", [False, True], ids=["reads on", "seeks"])
@pytest.mark.parametrize("name", REPORTED)
def test_polls_that_leaders_answer_lawfully_change_nothing(name: str, anew: bool) -> None:
    ops = _run(name)
    found = check_in_process(consumed(ops, anew=anew))
    assert next(answers(ops)).node
    before = Counter((each.kind, each.ranges, each.checker) for each in check_in_process(ops))
    assert before == Counter((each.kind, each.ranges, each.checker) for each in found), found
