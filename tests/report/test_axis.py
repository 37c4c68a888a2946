"""The axis keeps offsets in order, and shortens long stretches between the given ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.report.axis import CELL_PX, SHORTENED_PX, axis_of
from harness.report.limits import AXIS_KNOTS_MAX


def test_short_stretch_has_one_cell_for_every_offset() -> None:
    axis = axis_of([0, 3])
    assert [axis.x(n) for n in range(4)] == [0, CELL_PX, 2 * CELL_PX, 3 * CELL_PX]
    assert axis.stretches() == ((0, 3, False),)


def test_long_stretch_is_shortened_between_its_ends() -> None:
    axis = axis_of([0, 2, 1_000_000, 1_000_001])
    assert axis.stretches() == ((0, 2, False), (2, 1_000_000, True), (1_000_000, 1_000_001, False))
    assert axis.width == 3 * CELL_PX + SHORTENED_PX


def test_axis_of_nothing_has_one_cell() -> None:
    assert axis_of([]).width == CELL_PX


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_axis_rises_and_holds_every_offset_given(offsets: list[int]) -> None:
    axis = axis_of(offsets)
    places = [axis.x(o) for o in sorted(offsets)]
    assert sorted(places) == places
    assert places[0] >= 0 and places[-1] <= axis.width
    assert len(axis.knots) <= AXIS_KNOTS_MAX
