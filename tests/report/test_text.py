"""Numbers and values are formatted as text."""

from __future__ import annotations

import pytest

from harness.report.text import (
    clean,
    epoch_text,
    exact,
    offset_ranges,
    offsets,
    plural,
    seconds,
    shortened,
    took,
    value_text,
)


@pytest.mark.parametrize(
    ("first", "end", "expected"),
    [(7, 8, "7"), (3, 6, "3–5"), (2, 2, "none"), (3, 1, "none"), (0, 1500, "0–1,499")],
)
def test_offsets_are_named_inclusively(first: int, end: int, expected: str) -> None:
    assert expected == offsets(first, end)


def test_several_ranges_are_named_in_order() -> None:
    assert offset_ranges(((1, 2), (4, 7))) == "1, 4–6"


def test_time_is_rounded_for_reading_and_exact_on_demand() -> None:
    assert seconds(12_031_499_999) == "12.031 s"
    assert exact(12_031_499_999) == "12.031499999 s"


@pytest.mark.parametrize(
    ("duration_ns", "expected"),
    [(999_999, "1000 µs"), (1_000_000, "1.0 ms"), (999_000_000, "999.0 ms"), (1_000_000_000, "1.00 s")],
)
def test_duration_takes_the_unit_that_fits(duration_ns: int, expected: str) -> None:
    assert expected == took(duration_ns)


@pytest.mark.parametrize(
    ("epoch", "expected"), [(-1, "no epoch"), (None, "no epoch"), (0, "epoch 0"), (3, "epoch 3")]
)
def test_epoch_of_a_batch_without_one_is_no_epoch(epoch: int | None, expected: str) -> None:
    assert expected == epoch_text(epoch)


def test_counts_take_the_plural() -> None:
    assert (plural(1, "cell"), plural(1200, "cell")) == ("1 cell", "1,200 cells")


def test_clean_shows_control_characters_and_drops_what_no_page_can_hold() -> None:
    assert clean("a\x00\x1bb\n\ttail\ud800\u202e") == "a␀␛b\n\ttail\ufffd\ufffd"


def test_long_text_says_how_much_is_left_out() -> None:
    assert shortened("x" * 12, 10) == "x" * 10 + "… (2 more characters)"
    assert shortened("x" * 10, 10) == "x" * 10


def test_value_hides_what_the_table_is_about_and_nothing_else() -> None:
    value = {"topic": "t", "partition": 1, "from": 2, "reason": "high watermark"}
    assert value_text(value, hide={"topic": "t", "partition": 0}) == 'partition=1  from=2  reason="high watermark"'


def test_value_keeps_the_records_that_the_anomaly_is_about() -> None:
    records = [[n, "d", f"v{n}"] for n in range(50)]
    assert value_text({"records": records}, near=[(30, 31)]) == 'records=[[30, "d", "v30"]] (1 of 50 records)'
    assert value_text({"records": records[:3]}, near=[(1, 2)]).count('"d"') == 3
