"""Numbers that a user writes are read in plain digits and within their limits."""

from __future__ import annotations

import pytest

from harness.numerals import above_zero, whole


def test_numbers_within_their_limits_are_read() -> None:
    assert [0, 7, 10] == [whole(text, 0, 10) for text in ("0", "007", "10")]
    assert [0.5, 10.0] == [above_zero(text, 10) for text in ("0.5", "10")]


@pytest.mark.parametrize("text", ["", "-1", "+1", "11", "1_0", "1.0", " 1", "1e1", "0x1", "\u0663", "9" * 10_000])
def test_what_is_no_whole_number_within_its_limits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 0 to 10") as raised:
        whole(text, 0, 10)
    assert len(str(raised.value)) < 100


@pytest.mark.parametrize(
    "text", ["", "0", "0.0", "-1", "11", "inf", "nan", "1e1", ".5", "5.", "1_0", "9" * 10_000]
)
def test_what_is_no_number_above_zero_within_its_limits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number above 0, up to 10"):
        above_zero(text, 10)
