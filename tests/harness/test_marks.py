"""Numbers of a run: as they were acknowledged, and before that as they were drawn."""

from __future__ import annotations

import pytest

from harness.marks import Marks
from harness.model import UsageError


@pytest.fixture
def marks() -> Marks:
    return Marks(counts={"m1": 2, "m2": 3})


def test_values_are_numbered_within_their_group(marks: Marks) -> None:
    assert ["m2.0", "m2.1", "m2.2"] == marks.values("m2")
    with pytest.raises(UsageError, match="records 'm3': expected a group of the head: m1, m2"):
        marks.values("m3")


def test_acknowledged_group_lies_where_it_was_told(marks: Marks) -> None:
    marks.acknowledged("m1", [4, 5])
    assert (4, 6, 6, 9) == tuple(map(marks.number, ("start(m1)", "end(m1)", "start(m2)", "end(m2)")))


def test_group_that_told_nothing_follows_what_is_there(marks: Marks) -> None:
    marks.acknowledged("m1", [])
    assert (0, 2, 3) == tuple(map(marks.number, ("start(m1)", "end(m1)", "end(m2)")))


def test_group_under_way_lies_where_the_log_ended(marks: Marks) -> None:
    marks.expected("m2", 7)
    assert (7, 10) == (marks.number("start(m2)"), marks.number("end(m2)"))


@pytest.mark.parametrize("word", ["x", "-1", "end(m1", "middle(m1)", ""])
def test_word_that_is_no_number_is_told(marks: Marks, word: str) -> None:
    with pytest.raises(UsageError, match="expected 4, end"):
        marks.number(word)
