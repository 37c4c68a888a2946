"""How many produces each partition has, from its folded rows. This module imports nothing of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from checkers.spark.reading import Key, Packed, opened
from checkers.spark.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """
    How many produces a partition has.

    Attributes:
        sends: all.
        unanswered: without an offset, and not refused.
        told: acknowledged without an offset.
        unsaid: of which the client did not say what it sent.
        again: in buckets of which one value was perhaps sent before.
    """

    sends: int = 0
    unanswered: int = 0
    told: int = 0
    unsaid: int = 0
    again: int = 0

    def __add__(self, other: Sums) -> Sums:
        names = Sums.__slots__
        each = zip(names, astuple(self), astuple(other), strict=True)
        return Sums(**{name: one + two for name, one, two in each})


def sums_of(folds: Any) -> dict[Key, Sums]:
    """Return the sums of each partition that has produces, from folded rows (RDD of tables by partition)."""
    found: dict[Key, Sums] = {}
    for key, sums in folds.mapPartitions(_sums).collect():
        found[key] = found.get(key, Sums()) + sums
    return found


def _sums(items: Iterable[Packed]) -> Iterator[tuple[Key, Sums]]:
    for key, table in opened(items):
        rows = Rows(table).of("produces")
        if len(rows):
            yield key, _sums_in(rows)


def _sums_in(rows: Rows) -> Sums:
    n, placed = rows["n"], rows.known("bucket")
    of = {
        "sends": np.ones(len(n), dtype=bool),
        "unanswered": ~placed & ~rows.equal("outcome", "fail"),
        "told": ~placed & rows.equal("outcome", "ok"),
        "unsaid": rows["told"] == 0,
        "again": rows["rising"] == 0,
    }
    return Sums(**{name: int(n[some].sum()) for name, some in of.items()})
