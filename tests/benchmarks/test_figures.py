"""The benchmark's arithmetic and its table."""

from __future__ import annotations

import pytest

from benchmarks.figures import (
    FIGURES,
    OURS,
    Load,
    Spread,
    percentile,
    ratios,
    shares_of_throughput,
    short,
    table,
    values_of,
)
from benchmarks.job import Work
from tests.benchmarks.samples import BIG, KAFKA, RESULTS, SMALL, a_repeat, measured


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1.0), (0.01, 1.0), (0.5, 50.0), (0.501, 51.0), (0.99, 99.0), (1.0, 100.0)]
)
def test_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert expected == percentile([float(value) for value in range(1, 101)], share)


def test_percentile_of_few_values_is_one_of_them() -> None:
    assert (3.0, 3.0) == (percentile([3.0], 0.5), percentile([3.0], 0.99))
    assert (1.0, 2.0) == (percentile([1.0, 2.0], 0.5), percentile([1.0, 2.0], 0.51))


def test_spread_is_least_middle_and_most() -> None:
    assert Spread(least=1.0, middle=2.5, most=9.0) == Spread.of([9.0, 1.0, 3.0, 2.0])
    assert None is Spread.of([])
    assert "2.5 (1 … 9)" == str(Spread.of([9.0, 1.0, 3.0, 2.0]))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123, "0.0123"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346"), (0.0, "0")],
)
def test_number_has_three_digits_that_count(value: float, text: str) -> None:
    assert text == short(value)


def test_number_has_no_exponent_however_small() -> None:
    assert "0.0000" == short(0.000012)


def test_ratio_is_taken_within_a_repeat_and_only_where_both_have_a_figure() -> None:
    assert [0.5, 2.0] == ratios([1.0, None, 4.0, 5.0, 6.0], [2.0, 3.0, 2.0, 0.0, None])
    assert [] == ratios([1.0], [])


def test_values_are_those_of_the_figures_own_work() -> None:
    repeats = [{Work.PRODUCE: measured(1000), Work.CONSUME: measured(3000)}, {Work.PRODUCE: measured(2000)}]
    by_name = {figure.name: values_of(repeats, figure) for figure in FIGURES}
    assert [0.5, 1.0] == by_name["produce MB/s"]
    assert [1.5, None] == by_name["consume MB/s"]
    assert [None, None] == by_name["alone p50 ms"]
    assert [1000.0, 500.0] == by_name["broker CPU ms/MB"]


def test_table_has_every_figure_of_every_load_with_ours_beside_theirs_and_the_ratio() -> None:
    head, *rows = table(RESULTS)
    assert ("load", "figure", OURS, KAFKA, f"ours / {KAFKA}") == head
    assert len(rows) == 2 * len(FIGURES)
    assert ("acks=all, 1 KB", "produce MB/s", "1 (0.5 … 1.5)", "2 (2 … 4)", "0.25 (0.25 … 0.75)") == rows[0]
    assert ["acks=all, 1 KB", "acks=1, 100 B"] == [row[0] for row in rows if row[0]]
    assert [figure.name for figure in FIGURES] == [row[1] for row in rows[: len(FIGURES)]]


def test_table_of_ours_alone_has_no_ratio() -> None:
    head, first, *_ = table({BIG: {OURS: [a_repeat(1000)]}})
    assert (("load", "figure", OURS), "0.5 (0.5 … 0.5)") == (head, first[2])


def test_table_has_a_dash_where_there_is_no_figure() -> None:
    """A consumer has no latency, and a window without records has no CPU per MB."""
    rows = table({BIG: {OURS: [{Work.PRODUCE: measured(0)}], KAFKA: [a_repeat(1000)]}})
    by_name = {row[1]: row[2:] for row in rows}
    assert ("-", "1,000 (1,000 … 1,000)", "-") == by_name["broker CPU ms/MB"]
    assert ("-", "-") == (by_name["consume MB/s"][0], by_name["consume MB/s"][2])


def test_shares_of_throughput_are_the_middle_ratios_in_bytes() -> None:
    assert [
        (BIG, "produce MB/s", KAFKA, 0.25),
        (BIG, "consume MB/s", KAFKA, 0.25),
        (SMALL, "produce MB/s", KAFKA, 1.25),
        (SMALL, "consume MB/s", KAFKA, 1.25),
    ] == shares_of_throughput(RESULTS)
    assert [] == shares_of_throughput({BIG: {OURS: [a_repeat(1)]}})


def test_load_is_named_by_what_a_producer_asks_and_the_size_of_records() -> None:
    assert "acks=0, 1.5 KB" == str(Load(acks=0, record_bytes=1500))
    assert "acks=all, 999 B" == str(Load(acks=-1, record_bytes=999))
    many = Load(acks=1, record_bytes=1000, partitions=1_000, replicas=2, flushed=True)
    assert "acks=1, 1 KB, 1,000 partitions, 2 replicas, flushed" == str(many)
