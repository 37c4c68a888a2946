"""Whatever differs between logs, acknowledgements and reads is found in folded rows, in each of its buckets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.spark.compare import unlike
from checkers.spark.doubts import (
    DOUBT,
    FIRST,
    LOOK,
    SAMPLE,
    Finding,
    first_look,
)
from checkers.spark.head import Head, Part
from checkers.spark.rows import Rows, joined, lowest, numbers_in, spans_of

SHIFT = 4
LEADER, FOLLOWER, OTHER = 0, 1, 7
READ = 90
PART = Part(
    run=0,
    part=0,
    topic="t",
    partition=0,
    head=Head(
        logs=(("A", 50, 0, 64), ("B", 51, 0, 64)),
        leader="A",
        reads=((READ, 64),),
        doubts=((63, 65),),
    ),
    logs={LEADER: ("A", 50), FOLLOWER: ("B", 51), OTHER: ("A", 20)},
)
TYPES: dict[str, pa.DataType] = {
    "who": pa.dictionary(pa.int8(), pa.string()),
    **dict.fromkeys(("acks", "codec", "outcome"), pa.string()),
    **dict.fromkeys(("told", "odd"), pa.bool_()),
}
COLUMNS = (
    *(
        "who",
        "log",
        "read",
        "bucket",
        "n",
        "plain",
        "full",
        "told",
        "late",
        "odd",
        "first",
        "base",
        "last",
        "epoch",
    ),
    *("magic", "codec", "acks", "outcome", "invoked", "invoked_last"),
)
BUCKETS = range(4)


def _row(who: str, bucket: int, **more: Any) -> dict[str, Any]:
    return {"who": who, "bucket": bucket, "n": 16, "plain": 100 + bucket, "full": 200 + bucket, **more}


def _sound() -> list[dict[str, Any]]:
    """Return the rows of two logs of four buckets, all of it acknowledged and read; and of an older log."""
    rows = [_row("records", bucket, log=log) for log in (LEADER, FOLLOWER) for bucket in BUCKETS]
    rows += [_row("records", 0, log=OTHER, n=3)]
    about = {"acks": "-1", "codec": "none", "outcome": "ok"}
    for bucket in BUCKETS:
        first = 16 * bucket
        rows.append(_row("produces", bucket, told=True, invoked=first, invoked_last=first + 15, **about))
        rows.append(_row("reads", bucket, read=READ, first=first))
        shape = {"base": first, "last": first + 15, "epoch": 0, "magic": 2, "codec": "none", "odd": False}
        rows += [{**_row("batches", bucket, log=log, **shape), "full": 300} for log in (LEADER, FOLLOWER)]
    return rows


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    schema = pa.schema([(name, TYPES.get(name, pa.int64())) for name in COLUMNS])
    return pa.Table.from_pylist([{name: row.get(name) for name in COLUMNS} for row in rows], schema=schema)


def _of(rows: list[dict[str, Any]], who: str, bucket: int, **more: Any) -> dict[str, Any]:
    """Return the row of a table in a bucket."""
    (found,) = [
        row
        for row in rows
        if (row["who"], row["bucket"]) == (who, bucket) and all(row[name] == value for name, value in more.items())
    ]
    return found


def _without(rows: list[dict[str, Any]], who: str, bucket: int, **more: Any) -> None:
    rows.remove(_of(rows, who, bucket, **more))


CHANGES: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "follower-holds-another-record": lambda rows: _of(rows, "records", 2, log=FOLLOWER).update(full=1),
    "follower-holds-fewer": lambda rows: _of(rows, "records", 2, log=FOLLOWER).update(n=15),
    "leader-holds-nothing": lambda rows: _without(rows, "records", 2, log=LEADER),
    "acknowledged-another": lambda rows: _of(rows, "produces", 2).update(full=1),
    "acknowledged-more": lambda rows: _of(rows, "produces", 2).update(n=17),
    "acknowledged-nothing": lambda rows: _without(rows, "produces", 2),
    "landed-as-well": lambda rows: rows.append(_row("landed", 2, told=True, n=1)),
    "untold-value-is-another": lambda rows: _of(rows, "produces", 2).update(told=False, plain=1),
    "read-showed-another": lambda rows: _of(rows, "reads", 2).update(plain=1),
    "read-showed-fewer": lambda rows: _of(rows, "reads", 2).update(n=15),
    "read-showed-nothing": lambda rows: _without(rows, "reads", 2),
    "batch-is-another": lambda rows: _of(rows, "batches", 2, log=FOLLOWER).update(full=1),
    "leader-has-no-batch": lambda rows: _without(rows, "batches", 2, log=LEADER),
}


def _unlike(rows: list[dict[str, Any]]) -> list[int]:
    found: list[int] = unlike(Rows(_table(rows)), PART, {READ: 0}, SHIFT).tolist()
    return found


def test_nothing_is_unlike_where_all_agree_and_a_log_that_was_read_before_counts_nothing() -> None:
    assert [] == _unlike(_sound())
    assert [] == _unlike(_sound()[::-1])


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_differs_is_found_in_its_bucket(name: str) -> None:
    rows = _sound()
    CHANGES[name](rows)
    assert [2] == _unlike(rows)


def test_digests_that_no_client_told_are_not_compared() -> None:
    rows = _sound()
    _of(rows, "produces", 2).update(told=False, full=0)
    assert [] == _unlike(rows)


def test_follower_may_end_before_the_leader() -> None:
    rows = _sound()
    _without(rows, "records", 3, log=FOLLOWER)
    _without(rows, "batches", 3, log=FOLLOWER)
    assert [] == _unlike(rows)


def test_read_need_not_show_what_is_not_below_its_high_watermark() -> None:
    rows = _sound()
    _without(rows, "reads", 3)
    part = replace(PART, head=replace(PART.head, reads=((READ, 48),)))
    assert [] == unlike(Rows(_table(rows)), part, {READ: 0}, SHIFT).tolist()


def _first_look(rows: list[dict[str, Any]]) -> dict[str, set[tuple[int, int]]]:
    found: dict[str, set[tuple[int, int]]] = {}
    findings: list[Finding] = first_look(_table(rows), PART, SHIFT)
    for what, first, end in findings:
        found.setdefault(what, set()).add((first, end))
    return found


def test_first_look_finds_ends_samples_and_where_reads_begin() -> None:
    found = _first_look(_sound())
    assert {FIRST: {(READ, 0)}, DOUBT: {(0, 1), (63, 64), (63, 65)}, SAMPLE: {(0, 0), (63, 0)}} == found


def test_first_look_goes_on_to_the_end_of_a_batch_and_of_what_is_late() -> None:
    rows = _sound()
    _of(rows, "batches", 1, log=FOLLOWER).update(odd=True, last=40)
    _of(rows, "produces", 0).update(late=20)
    assert {(16, 41), (0, 20)} == _first_look(rows)[LOOK]


def test_ranges() -> None:
    assert [(1, 4), (7, 8), (9, 10)] == spans_of(np.array([1, 2, 3, 7, 9]))
    assert [] == spans_of(np.array([], dtype=np.int64))
    assert [(0, 5), (7, 9)] == joined([(7, 9), (0, 2), (1, 5), (2, 3)])
    assert [(0, 5), (7, 8)] == lowest([(0, 5), (7, 9), (20, 30)], 6)
    assert [] == lowest([(0, 5)], 0)
    assert [0, 1, 2, 3] == [*numbers_in([(3, 48), (50, 51)], SHIFT)]
