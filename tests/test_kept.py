"""The kept values of a grid stay in `make test`; every other value is marked exhaustive."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest
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


@pytest.mark.parametrize(
    ("text", "seen"),
    [("@pytest." + "mark.slow", True), ("@exhaustive", True), ("keep([1, 2], 1)", True), ("# a slow test", False)],
)
def test_slow_test_is_refused_in_a_file_that_its_lane_would_not_read(
    tmp_path: Path, text: str, seen: bool
) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(text, encoding="utf-8")
    item: Any = SimpleNamespace(path=path, get_closest_marker=lambda name: "slow" == name)
    with nullcontext() if seen else pytest.raises(pytest.UsageError, match="has a slow test; expected"):
        conftest.pytest_collection_modifyitems([item])


def test_markers_of_the_slow_lanes_are_those_of_the_makefile() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    assert f"SLOW := {' or '.join(conftest.LANES)}" in makefile.splitlines()
