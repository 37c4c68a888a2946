"""The kept values of a grid stay in `make test`; every other value is marked exhaustive."""

from __future__ import annotations

import pytest

from tests.kept import exhaustive, keep


def test_every_value_but_those_kept_is_exhaustive() -> None:
    one = pytest.param(1, "a", id="one", marks=pytest.mark.slow)
    made = keep([one, ("two"), 3], "one", 3)
    assert [((1, "a"), "one"), (("two",), None), ((3,), None)] == [(each.values, each.id) for each in made]
    assert [[pytest.mark.slow.mark], [exhaustive.mark], []] == [
        [getattr(mark, "mark", mark) for mark in each.marks] for each in made
    ]


def test_kept_value_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"kept \['c'\]: not among the values"):
        keep(["a", "b"], "a", "c")
