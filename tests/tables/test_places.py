"""A place is the same number whether a row is written or looked for."""

from __future__ import annotations

import pytest

from harness.tables.places import LAST, PART_SHIFT, place_of, places_of


@pytest.mark.parametrize(
    ("part", "offset", "expected"),
    [
        (0, 0, 0),
        (0, 4_095, 0),
        (0, 4_096, 1),
        (3, 8_192, (3 << PART_SHIFT) + 2),
        (1, 2**62, (1 << PART_SHIFT) + LAST),
    ],
)
def test_place_of_an_offset(part: int, offset: int, expected: int) -> None:
    assert expected == place_of(part, offset)
    assert [expected] == places_of([part], [offset]).to_pylist()


def test_rows_without_an_offset_have_no_place() -> None:
    assert [None, None, 0] == places_of([0, 5, 0], [None, -1, 7]).to_pylist()
